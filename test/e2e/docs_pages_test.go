package e2e

// A scene is the state that the commands of a page need, and the events that no command causes.
type scene struct {
	page string
	// begin and end happen before and after all commands, meanwhile before the command in its key.
	begin, end event
	meanwhile  map[string]event
	// codes are the exit codes that are not 0, by command.
	codes map[string]int
}

// An event is a set of changes to a cluster. They happen in the order of the fields.
type event struct {
	// lost destroys the cluster with its etcd, and starts another one of this name in its place.
	lost string
	// in makes the commands from here on run in the cluster of this name. It is started beside the
	// others if it does not exist.
	in string
	// ended destroys another cluster than the one in which the commands run.
	ended string
	// restarted makes Velero discover new kinds, which it otherwise does every five minutes.
	restarted bool
	// forgotten removes the namespace from the cluster without any change in the cloud.
	forgotten bool
	// run are commands that must succeed.
	run []string
}

// manifests is the folder of objects that the pages name and none of their commands creates.
const manifests = "test/e2e/testdata/docs/"

// inPod begins a command in Velero's Pod.
const inPod = "kubectl exec -n velero deploy/velero -- /plugins/velero-plugin-for-crossplane "

// scenes returns the scenes in the order in which the pages are read. Each starts from the state
// that the ones before have left.
func scenes() []scene {
	return []scene{
		{
			page: "example/README.md",
			meanwhile: map[string]event{
				"kubectl create -f example/velero/backup.yaml":  {restarted: true},
				"velero backup get shop":                        {lost: "second"},
				"kubectl create -f example/velero/restore.yaml": {restarted: true},
			},
		},
		{
			page:      "README.md",
			begin:     event{restarted: true}, // The restore has created the XRD, and Velero discovers kinds only every five minutes.
			meanwhile: map[string]event{"velero restore create team-a --from-backup team-a --wait": {forgotten: true}},
		},
		{
			page: "docs/recovery.md",
			begin: event{run: []string{
				"kubectl apply -f " + manifests + "orders.yaml", "kubectl wait --for=condition=Ready environment --all -n team-a --timeout=3m",
			}},
			meanwhile: map[string]event{
				"kubectl get functions.pkg.crossplane.io": {
					lost: "third", run: []string{"kubectl wait --for=create backup.velero.io/nightly -n velero --timeout=1m"},
				},
			},
		},
		{page: "docs/inspect.md"},
		{
			page: "docs/commands.md", begin: event{run: []string{"kubectl config set-context standby --cluster=third --user=third"}},
			meanwhile: map[string]event{
				"velero-plugin-for-crossplane validate -n team-a -o json > adopted.json": {run: []string{
					"velero-plugin-for-crossplane release --handover -n team-a", "kubectl wait --for=condition=Ready environment,managed --all -n team-a --timeout=3m",
				}},
			},
			// There is no other cluster. The commands of docs/handover.md run in two.
			codes: map[string]int{"velero-plugin-for-crossplane retire -n team-a --report adopted.json": 1},
			end: event{run: []string{
				"kubectl delete restore.velero.io nightly -n velero --timeout=1m", "velero restore create nightly --from-backup nightly --wait",
				"velero-plugin-for-crossplane validate -n team-a",
			}},
		},
		{page: "docs/monitoring.md"},
		{page: "docs/validate.md"},
		{page: "docs/release.md"},
		{page: "docs/report.md", begin: event{run: []string{"cp example/backup/shop-v2.tar.gz backup.tar.gz"}}},
		{
			page: "docs/drills.md", begin: event{forgotten: true},
			codes: map[string]int{"velero-plugin-for-crossplane validate --restore drill": 3},
			end:   event{run: []string{"kubectl delete -k example/drill", "velero-plugin-for-crossplane validate -n team-a"}},
		},
		{
			page: "docs/namespace.md", begin: event{forgotten: true},
			meanwhile: map[string]event{
				"velero restore create shop-alone --from-backup nightly --include-namespaces team-a --resource-policies-configmap one-tree --wait": {forgotten: true},
			},
			end: event{run: []string{"kubectl get environment shop -n team-a", "velero-plugin-for-crossplane validate -n team-a"}},
		},
		{page: "docs/cloning.md", end: event{run: []string{"kubectl delete environment --all -n team-b --timeout=3m"}}},
		{
			page: "docs/handover.md",
			meanwhile: map[string]event{
				"velero restore create team-a-move --from-backup team-a-move --wait": {
					in: "fourth", run: []string{"kubectl wait --for=create backup.velero.io/team-a-move -n velero --timeout=1m"},
				},
				"velero-plugin-for-crossplane retire -n team-a --report adopted.json --dry-run": {in: "third"},
				inPod + "validate -n team-a --report-location default":                          {in: "fourth"},
				inPod + "retire -n team-a --report-location default --yes":                      {in: "third"},
			},
			// The retire before it has left nothing.
			codes: map[string]int{inPod + "retire -n team-a --report-location default --yes": 1},
			// Back to the cluster of the other pages, as if the other one were lost.
			end: event{ended: "fourth", run: []string{"velero restore create team-a-back --from-backup team-a-move --wait", "velero-plugin-for-crossplane validate -n team-a"}},
		},
		{
			page: "docs/standby.md",
			meanwhile: map[string]event{
				// The other clusters never write to the same cloud at once.
				"velero backup create platform-1 --from-schedule platform --wait": {run: []string{"velero-plugin-for-crossplane hold -A"}},
				"velero restore create standby-monday --from-schedule platform --annotations velero.crossplane.io/standby=true --existing-resource-policy update --wait": {
					in: "fifth", run: []string{"kubectl wait --for=create backup.velero.io/platform-1 -n velero --timeout=1m"},
				},
				"velero-plugin-for-crossplane hold -A": {in: "third"},
			},
			codes: map[string]int{"velero-plugin-for-crossplane validate --restore standby-monday": 3},
			// The other pages go on in the first cluster.
			end: event{ended: "fifth", run: []string{"velero-plugin-for-crossplane release --handover --force --yes"}},
		},
		{
			page: "docs/gitops.md",
			begin: event{run: []string{
				"kubectl apply -f " + manifests + "gitops-kinds.yaml", "kubectl wait --for=condition=Established crd --all --timeout=1m",
				"kubectl apply -f " + manifests + "gitops.yaml",
			}},
			codes: map[string]int{"kubectl create -f example/v2/environment.yaml --dry-run=server": 1}, // The guard refuses it.
			meanwhile: map[string]event{
				"velero restore create team-a-guarded --from-backup team-a --wait": {forgotten: true},
				"velero restore create team-a-git --from-backup team-a --wait":     {forgotten: true},
				`kubectl get managed -n team-a -l crossplane.io/composite=shop -o custom-columns='KIND:.kind,NAME:.metadata.name,EXTERNAL:.metadata.annotations.` +
					`crossplane\.io/external-name' > made-by-git.txt`: {forgotten: true, run: []string{
					"kubectl create namespace team-a", "kubectl apply -f example/v2/environment.yaml",
					"kubectl wait --for=condition=Ready environment/shop -n team-a --timeout=3m",
				}},
			},
		},
		{page: "docs/settings.md", begin: event{forgotten: true}},
		{page: "docs/removal.md"},
	}
}
