package pages

// A Replacement is a command that runs in place of a documented one, or none if Run is "".
type Replacement struct {
	Reason, Run string
}

// Replacements returns, by command, what runs in place of the commands that can't run in a test as
// they are: the part of them that can.
func Replacements() map[string]Replacement {
	return map[string]Replacement{
		"git clone https://github.com/crossplane-contrib/velero-plugin-for-crossplane && cd velero-plugin-for-crossplane": {
			Reason: "It needs a network; this test is in what it would clone.", Run: "test -e go.mod",
		},
		"make demo": {Reason: "It is a test of its own, and takes minutes.", Run: "make -n demo"},
		"make build": {
			Reason: "It is built already, and this would write into the repository.", Run: "make -n build",
		},
		"kubectl -n velero rollout status deployment/velero --timeout=5m": {
			Reason: "Velero is a process here; nothing rolls its Deployment out.", Run: "kubectl -n velero get deployment/velero",
		},
		"kubectl -n velero wait job/drill --for=condition=Complete --timeout=2h": {
			Reason: "There is no controller of Jobs here. Another test runs the Job.", Run: "kubectl -n velero get job/drill",
		},
		"kubectl -n velero logs job/drill --all-containers": {Reason: "The same.", Run: "kubectl -n velero get job/drill"},
		"make compat":                             {Reason: "It takes hours.", Run: "make -n compat"},
		"make compat ONLY=v1.16,v2.0":             {Reason: "It takes hours.", Run: "make -n compat ONLY=v1.16,v2.0"},
		"make compat MISSING=true":                {Reason: "It takes hours.", Run: "make -n compat MISSING=true"},
		"make compat ONLY=v2.3-v2.4-alone":        {Reason: "It takes minutes.", Run: "make -n compat ONLY=v2.3-v2.4-alone"},
		"make compat ONLY=v1.20-v2.3,v1.16-v1.18": {Reason: "It takes minutes.", Run: "make -n compat ONLY=v1.20-v2.3,v1.16-v1.18"},
		"kubectl apply -f example/gitops/guard.yaml": {
			Reason: "Velero and Crossplane have no ServiceAccounts here.",
			Run:    `sed 's/"system:serviceaccount:velero:velero",/"stack", &/' example/gitops/guard.yaml | kubectl apply -f -`,
		},
		"kubectl create -f example/v2/environment.yaml --dry-run=server": {
			Reason: "The user of this test may pass, and a user would try again.",
			Run: "for try in $(seq 30); do kubectl create -f example/v2/environment.yaml --dry-run=server --as=someone --as-group=system:masters 2>&1 | " +
				"grep denied && exit 1; sleep 1; done",
		},
		"velero-plugin-for-crossplane release -n team-a": {
			Reason: "There is no terminal to ask for confirmation.", Run: "velero-plugin-for-crossplane release -n team-a --yes",
		},
		"velero-plugin-for-crossplane release -A": {Reason: "The same.", Run: "velero-plugin-for-crossplane release -A --yes"},
		"kubectl scale deployment --all -n crossplane-system --replicas=0": {
			Reason: "Crossplane and the provider are processes here, without Deployments.", Run: "kubectl get deployments -n crossplane-system",
		},
		"velero-plugin-for-crossplane install --target /opt/velero/plugins": {
			Reason: "It would write into the machine.", Run: "velero-plugin-for-crossplane install --target .",
		},
		"go run . inspect example/backup/shop-v2.tar.gz": {
			Reason: "The same program is built already; it ends with 3, since there are problems.",
			Run:    "velero-plugin-for-crossplane inspect example/backup/shop-v2.tar.gz; test $? = 3",
		},
		"velero-plugin-for-crossplane completion bash > /etc/bash_completion.d/velero-plugin-for-crossplane": {
			Reason: "It would write into the machine.", Run: "velero-plugin-for-crossplane completion bash > completion.bash",
		},
		`velero-plugin-for-crossplane completion zsh > "${fpath[1]}/_velero-plugin-for-crossplane"`: {
			Reason: "It would write into the machine, and is for another shell.", Run: "velero-plugin-for-crossplane completion zsh > completion.zsh",
		},
		"velero-plugin-for-crossplane completion fish > ~/.config/fish/completions/velero-plugin-for-crossplane.fish": {
			Reason: "It would write into the user's home.", Run: "velero-plugin-for-crossplane completion fish > completion.fish",
		},
	}
}
