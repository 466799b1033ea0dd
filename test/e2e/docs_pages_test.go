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
				"velero-plugin-for-crossplane drill run --from-schedule nightly": {forgotten: true},
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
		{page: "docs/monitoring.md"}, // After the drills of the page before.
		{page: "docs/validate.md"},
		{page: "docs/release.md"},
		{page: "docs/report.md", begin: event{run: []string{"cp example/backup/shop-v2.tar.gz backup.tar.gz"}}},
		{
			page: "docs/drills.md", begin: event{forgotten: true},
			meanwhile: map[string]event{"velero-plugin-for-crossplane drill run --from-schedule nightly": {forgotten: true}},
			codes:     map[string]int{"velero-plugin-for-crossplane validate --restore drill": 3},
			end: event{run: []string{
				"kubectl delete -k example/drill", "velero restore create after-the-drill --from-schedule nightly --wait", "velero-plugin-for-crossplane validate -n team-a",
			}},
		},
		{page: "docs/namespace.md", begin: event{forgotten: true}},
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
			meanwhile: map[string]event{
				"velero restore create team-a-guarded --from-backup team-a --wait": {forgotten: true},
				"velero restore create team-a-git --from-backup team-a --wait":     {forgotten: true},
				"velero-plugin-for-crossplane exchange team-a/shop --backup team-a.tar.gz --dry-run": {forgotten: true, run: []string{
					"kubectl create namespace team-a", "kubectl apply -f example/v2/environment.yaml",
					"kubectl wait --for=condition=Ready environment/shop -n team-a --timeout=3m",
				}},
			},
		},
		{page: "docs/settings.md", begin: event{forgotten: true}},
		{page: "docs/removal.md"},
	}
}

// A replacement is a command that runs in place of another one, or none if run is "".
type replacement struct {
	reason, run string
}

// instead are the commands that can't run here as they are, each with the reason and with the part
// of it that can.
var instead = map[string]replacement{
	"git clone https://github.com/crossplane-contrib/velero-plugin-for-crossplane && cd velero-plugin-for-crossplane": {
		reason: "It needs a network; this test is in what it would clone.", run: "test -e go.mod",
	},
	"make demo": {reason: "It is a test of its own, and takes minutes.", run: "make -n demo"},
	"make build": {
		reason: "It is built already, and this would write into the repository.", run: "make -n build",
	},
	"kubectl -n velero rollout status deployment/velero --timeout=5m": {
		reason: "Velero is a process here; nothing rolls its Deployment out.", run: "kubectl -n velero get deployment/velero",
	},
	"make compat":                             {reason: "It takes hours.", run: "make -n compat"},
	"make compat ONLY=v1.16,v2.0":             {reason: "It takes hours.", run: "make -n compat ONLY=v1.16,v2.0"},
	"make compat MISSING=true":                {reason: "It takes hours.", run: "make -n compat MISSING=true"},
	"make compat ONLY=v2.3-v2.4-alone":        {reason: "It takes minutes.", run: "make -n compat ONLY=v2.3-v2.4-alone"},
	"make compat ONLY=v1.20-v2.3,v1.16-v1.18": {reason: "It takes minutes.", run: "make -n compat ONLY=v1.20-v2.3,v1.16-v1.18"},
	"make bench XRS=100 MRS=10 PAIRS=1 LARGE=300 HELD=40 OBJECTS=5000 ONLY=restore,release UPJET=upjet": {
		reason: "It takes minutes.", run: "make -n bench XRS=100 MRS=10 PAIRS=1 LARGE=300 HELD=40 OBJECTS=5000 ONLY=restore,release UPJET=upjet",
	},
	"make bench XRS=100 MRS=10 PAIRS=1 LARGE=300 HELD=40 OBJECTS=5000 ONLY=release UPJET=false": {
		reason: "It takes minutes.", run: "make -n bench XRS=100 MRS=10 PAIRS=1 LARGE=300 HELD=40 OBJECTS=5000 ONLY=release UPJET=false",
	},
	"velero-plugin-for-crossplane guard on --backup team-a.tar.gz": {
		reason: "Velero and Crossplane have no ServiceAccounts here.", run: "velero-plugin-for-crossplane guard on --backup team-a.tar.gz --allow-user stack",
	},
	"velero-plugin-for-crossplane guard on --backup nightly.tar.gz": {
		reason: "The same.", run: "velero-plugin-for-crossplane guard on --backup nightly.tar.gz --allow-user stack",
	},
	"velero-plugin-for-crossplane exchange team-a/shop --backup team-a.tar.gz": {
		reason: "There is no terminal to ask for confirmation.", run: "velero-plugin-for-crossplane exchange team-a/shop --backup team-a.tar.gz --yes",
	},
	"velero-plugin-for-crossplane retire -n team-a --report adopted.json": {
		reason: "There is no terminal to ask for confirmation.", run: "velero-plugin-for-crossplane retire -n team-a --report adopted.json --yes",
	},
	"velero-plugin-for-crossplane install --target /opt/velero/plugins": {
		reason: "It would write into the machine.", run: "velero-plugin-for-crossplane install --target .",
	},
	"go run . inspect example/backup/shop-v2.tar.gz": {
		reason: "The same program is built already; it ends with 3, since there are problems.",
		run:    "velero-plugin-for-crossplane inspect example/backup/shop-v2.tar.gz; test $? = 3",
	},
	"velero-plugin-for-crossplane completion bash > /etc/bash_completion.d/velero-plugin-for-crossplane": {
		reason: "It would write into the machine.", run: "velero-plugin-for-crossplane completion bash > completion.bash",
	},
	`velero-plugin-for-crossplane completion zsh > "${fpath[1]}/_velero-plugin-for-crossplane"`: {
		reason: "It would write into the machine, and is for another shell.", run: "velero-plugin-for-crossplane completion zsh > completion.zsh",
	},
	"velero-plugin-for-crossplane completion fish > ~/.config/fish/completions/velero-plugin-for-crossplane.fish": {
		reason: "It would write into the user's home.", run: "velero-plugin-for-crossplane completion fish > completion.fish",
	},
	"go test -v -run TestExplore ./internal/explorer": {reason: "It is a test of its own.", run: "ls internal/explorer/*_test.go"},
	"make explore": {reason: "It takes an hour.", run: "make -n explore"},
	"cd test/restorer && go test ./forest -run TestForests -forest.seed 681 -forest.count 1": {
		reason: "It is a test of its own.", run: "ls test/restorer/forest/*_test.go",
	},
	"cd test/restorer && go test ./forest -forest.seed 1000000 -forest.count 200000": {reason: "It takes hours.", run: "ls test/restorer/forest/*_test.go"},
	"cd test/restorer && go test -v . -forest.seed 15 -forest.count 30":              {reason: "It is a test of its own.", run: "ls test/restorer/*_test.go"},
	"make forests SEED=1000000 FORESTS=100000":                                       {reason: "It takes hours.", run: "make -n forests"},
	"make bench": {
		reason: "It takes hours.", run: "make -n bench",
	},
	"make bench XRS=20 PAIRS=1 LARGE=40 HELD=40 OBJECTS=5000": {
		reason: "It takes long, and the machine for itself.", run: "make -n bench XRS=20 PAIRS=1 LARGE=40 HELD=40 OBJECTS=5000",
	},
	"make bench ONLY=restore,release": {
		reason: "It takes long, and the machine for itself.", run: "make -n bench ONLY=restore,release",
	},
	"make bench KEEP=1": {
		reason: "It would write into the page.", run: "make -n bench KEEP=1",
	},
}
