package e2e

import "regexp"

// A role is one of the examples.
type role struct {
	reason string
	// files of the example folder grant the rights to this ServiceAccount.
	files           []string
	namespace, name string
	// may matches its rights, as "verb resource.group namespace".
	may *regexp.Regexp
	// rights is their number, if no command shows that it has what it needs.
	rights int
	// does are the commands that the role is for, each with its exit code. cannot are those that
	// fail because a right is missing.
	does, cannot map[string]int
	// without are resources that does may be refused without a difference; "*" means all.
	without []string
}

// asAdministrator means the exit code that the command has with all rights.
const asAdministrator = -1

// elsewhere is a namespace for which no role has rights.
const elsewhere = "kube-public"

const (
	mayValidate = `^get namespaces\. |^list ([\w/]+\.(platform|cloud|cloud\.m)\.example\.org |(compositeresourcedefinitions|compositionrevisions|environmentconfigs|usages|managedresourcedefinitions)\.apiextensions\.crossplane\.io |` +
		`(cluster)?usages\.protection\.crossplane\.io |(functions|functionrevisions|providerrevisions|deploymentruntimeconfigs)\.pkg\.crossplane\.io |` +
		`(cluster)?rolebindings\.rbac\.authorization\.k8s\.io |validatingadmissionpolicies\.admissionregistration\.k8s\.io |(restores\.velero\.io|deployments\.apps) velero$)`
	mayPatch   = `|^(patch|list) (cron|watch)operations\.ops\.crossplane\.io |^patch (x?environments\.platform|(buckets|networks|databases)\.cloud(\.m)?)\.example\.org `
	mayRelease = `|^watch (x?environments\.platform|(buckets|networks|databases)\.cloud(\.m)?)\.example\.org |^create events\. |` +
		`^watch (compositeresourcedefinitions|compositionrevisions)\.apiextensions\.crossplane\.io |^watch (functions|functionrevisions)\.pkg\.crossplane\.io `
	mayInspect = `|^get [\w/]+\.(platform|cloud|cloud\.m)\.example\.org |^(get|list) (compositions|compositeresourcedefinitions)\.apiextensions\.crossplane\.io |` +
		`^list customresourcedefinitions\.apiextensions\.k8s\.io |^list configmaps\. velero$`
)

func rolesOf(h *hooked, backup string) map[string]role {
	return map[string]role{
		"Hold": {
			reason: "hold patches what it holds and reads the signing key. It creates and deletes nothing.",
			files:  []string{"rbac/validate.yaml", "rbac/hold.yaml"}, namespace: "velero", name: plugin + "-hold",
			may:  regexp.MustCompile(mayValidate + mayPatch),
			does: map[string]int{"hold --dry-run -n " + h.Namespace: 0, "hold --dry-run -A": asAdministrator}, cannot: map[string]int{"settings": 1},
			without: []string{"deployments"}, // As for validate.
		},
		"Wait": {
			reason: "A Pod that waits reads its XR or claim, in its own namespace.",
			files:  []string{"rbac/wait.yaml"}, namespace: h.Namespace, name: h.Name(0),
			may:     regexp.MustCompile(`^list environments\.platform\.example\.org ` + h.Namespace + "$"),
			does:    map[string]int{"wait " + h.Name(0) + " -n " + h.Namespace + " --timeout 0": 0},
			cannot:  map[string]int{"wait -n " + elsewhere + " --timeout 0": 4, "wait --timeout 0": 4, "validate": 1},
			without: []string{"deployments"}, // A Pod need not see Crossplane's version.
		},
		"Validate": {
			reason: "validate reads everything that may be in a tree, and writes nothing.",
			files:  []string{"rbac/validate.yaml"}, namespace: "velero", name: plugin + "-validate",
			may: regexp.MustCompile(mayValidate),
			does: map[string]int{
				"validate -o wide": asAdministrator, "validate --strict -n " + h.Namespace: 0, "validate --strict --restore " + h.Namespace: 0,
				"wait --timeout 0 --restore " + h.Namespace: 0,
			},
			without: []string{"deployments"}, // Crossplane's has its version, which is optional in a report.
		},
		"Inspect": {
			reason: "The planning of a restore also reads single objects, and need not read all kinds of a backup.",
			files:  []string{"rbac/validate.yaml", "rbac/inspect.yaml"}, namespace: "velero", name: plugin + "-inspect",
			may:  regexp.MustCompile(mayValidate + mayInspect),
			does: map[string]int{"inspect --against --strict " + backup: 0}, without: []string{"*"},
		},
		"Download": {
			reason: "A download by Velero's client needs the Backup, its location and a DownloadRequest.",
			files:  []string{"monitoring/download.yaml"}, namespace: "velero", name: "velero-backup-download",
			may:    regexp.MustCompile(`^((get|list) backups|get backupstoragelocations|(create|get) downloadrequests)\.velero\.io velero$`),
			rights: 5,
			cannot: map[string]int{"settings": 1},
		},
		"Settings": {
			reason: "The command settings reads the objects that have them, and nothing of Crossplane's.",
			files:  []string{"rbac/settings.yaml"}, namespace: "velero", name: plugin + "-settings",
			may:    regexp.MustCompile(`^(list configmaps\.|get (backups|restores)\.velero\.io) velero$`),
			does:   map[string]int{"settings": 0, "settings --restore " + h.Namespace: 0, "settings --backup " + h.Namespace: 0},
			cannot: map[string]int{"settings --velero-namespace " + elsewhere: 1, "validate": 1},
		},
		"Release": {
			reason: "release patches held objects, and neither creates nor deletes any.",
			files:  []string{"rbac/validate.yaml", "rbac/release.yaml"}, namespace: "velero", name: plugin + "-release",
			may:     regexp.MustCompile(mayValidate + mayPatch + mayRelease),
			does:    map[string]int{"release --restore leaked": 0, "validate --restore leaked": 0},
			without: []string{"secrets", "deployments"}, // It reads them only to explain a slow Crossplane, and to name its version.
		},
	}
}
