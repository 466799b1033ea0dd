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

// missingThere is the command that lists what the other cluster lacks. It lists nothing, and ends
// with 1.
const missingThere = "grep -vxFf adopted held"

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
				"velero restore create drill --from-backup nightly --annotations velero.crossplane.io/hold=all --wait": {forgotten: true},
			},
			codes: map[string]int{"velero-plugin-for-crossplane validate --restore drill": 3},
			end: event{forgotten: true, run: []string{
				"kubectl delete restore.velero.io nightly -n velero --timeout=1m", "velero restore create nightly --from-backup nightly --wait",
				"velero-plugin-for-crossplane validate -n team-a",
			}},
		},
		{page: "docs/commands.md"},
		{
			page: "docs/monitoring.md", begin: event{run: []string{"velero backup download nightly -o nightly.tar.gz"}},
			end: event{run: []string{"kubectl delete -k example/drill"}},
		},
		{
			page: "docs/validate.md", begin: event{run: []string{"cp example/backup/shop-v2.tar.gz backup.tar.gz"}},
			codes: map[string]int{"velero-plugin-for-crossplane inspect backup.tar.gz -o json > report.json": 3},
		},
		{
			page: "docs/namespace.md", begin: event{forgotten: true},
			meanwhile: map[string]event{
				"velero restore create shop-alone --from-backup nightly --include-namespaces team-a --resource-policies-configmap one-tree --wait": {forgotten: true},
				"velero restore create team-b --from-backup team-a --namespace-mappings team-a:team-b --wait": {
					run: []string{"kubectl get environment shop -n team-a", "velero-plugin-for-crossplane validate -n team-a"},
				},
			},
			end: event{run: []string{"kubectl delete environment --all -n team-b --timeout=3m"}},
		},
		{
			page: "docs/moving.md",
			meanwhile: map[string]event{
				"velero restore create team-a-move --from-backup team-a-move --wait": {
					in: "fourth", run: []string{"kubectl wait --for=create backup.velero.io/team-a-move -n velero --timeout=1m"},
				},
				"kubectl get managed -n team-a -o name | grep -xFf held > mrs": {in: "third"},
				// Back to the cluster of the other pages, as if the other one were lost.
				"velero-plugin-for-crossplane hold -A": {
					ended: "fourth", run: []string{"velero restore create team-a-back --from-backup team-a-move --wait", "velero-plugin-for-crossplane validate -n team-a"},
				},
				"velero restore create platform-move --from-backup platform-move --wait": {
					in: "fifth", run: []string{"kubectl wait --for=create backup.velero.io/platform-move -n velero --timeout=1m"},
				},
				"velero-plugin-for-crossplane release -n team-a": {in: "third", ended: "fifth"},
			},
			codes: map[string]int{missingThere: 1},
			end:   event{run: []string{"velero-plugin-for-crossplane validate -n team-a"}},
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
		{page: "docs/install.md"},
		{page: "docs/backup.md"},
	}
}
