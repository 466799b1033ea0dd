package e2e

import (
	"slices"
	"strings"
)

// A role is one of the examples.
type role struct {
	reason string
	// files of the example folder grant the rights to this ServiceAccount.
	files           []string
	namespace, name string
	want            func(r right) bool
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

// releaseReads are the rights of the role of release to list and watch, besides those of validate.
var releaseReads = map[string]string{
	"cronoperations.ops.crossplane.io":                         "* list",
	"watchoperations.ops.crossplane.io":                        "* list",
	"environments.platform.example.org":                        "* watch",
	"xenvironments.platform.example.org":                       "* watch",
	"buckets.cloud.example.org":                                "* watch",
	"databases.cloud.example.org":                              "* watch",
	"networks.cloud.example.org":                               "* watch",
	"buckets.cloud.m.example.org":                              "* watch",
	"databases.cloud.m.example.org":                            "* watch",
	"networks.cloud.m.example.org":                             "* watch",
	"compositeresourcedefinitions.apiextensions.crossplane.io": "* watch",
	"compositionrevisions.apiextensions.crossplane.io":         "* watch",
	"functions.pkg.crossplane.io":                              "* watch",
	"functionrevisions.pkg.crossplane.io":                      "* watch",
}

// downloads are the rights of the role of the Job that downloads a backup.
var downloads = map[string]string{
	"backups.velero.io":                "velero get list",
	"backupstoragelocations.velero.io": "velero get",
	"downloadrequests.velero.io":       "velero create get",
}

// only returns a function that reports whether a right is one of these.
func only(rights map[string]string) func(r right) bool {
	return func(r right) bool {
		in, verbs, _ := strings.Cut(rights[r.Resource+"."+r.Group], " ")

		return (in == "*" || in == r.Namespace) && slices.Contains(strings.Fields(verbs), r.Verb)
	}
}

// planning reports whether a right is one that inspect --against needs besides those of validate.
func planning(r right) bool {
	switch r.Resource + "." + r.Group {
	case "compositions.apiextensions.crossplane.io", "compositeresourcedefinitions.apiextensions.crossplane.io":
		return r.Verb == "get" || r.Verb == "list"
	case "customresourcedefinitions.apiextensions.k8s.io":
		return r.Verb == "list"
	case "configmaps.":
		return r.Verb == "list" && r.Namespace == "velero"
	default:
		return false
	}
}

func rolesOf(h *hooked, backup string) map[string]role {
	platform := []string{"platform.example.org", "cloud.example.org", "cloud.m.example.org"}
	reads := map[string]bool{
		"compositeresourcedefinitions.apiextensions.crossplane.io": true, "compositionrevisions.apiextensions.crossplane.io": true,
		"environmentconfigs.apiextensions.crossplane.io": true, "usages.apiextensions.crossplane.io": true, "usages.protection.crossplane.io": true, "clusterusages.protection.crossplane.io": true,
		"managedresourcedefinitions.apiextensions.crossplane.io": true,
		"functions.pkg.crossplane.io":                            true, "functionrevisions.pkg.crossplane.io": true,
		"providerrevisions.pkg.crossplane.io": true, "deploymentruntimeconfigs.pkg.crossplane.io": true,
		"clusterrolebindings.rbac.authorization.k8s.io": true, "rolebindings.rbac.authorization.k8s.io": true,
		"validatingadmissionpolicies.admissionregistration.k8s.io": true,
	}
	validate := func(r right) bool {
		resource := r.Resource + "." + r.Group

		inVelero := r.Namespace == "velero" && slices.Contains([]string{"restores.velero.io", "deployments.apps"}, resource)

		return r.Verb == "get" && resource == "namespaces." || r.Verb == "list" && (slices.Contains(platform, r.Group) || reads[resource] || inVelero)
	}
	patched := map[string]bool{
		"cronoperations.ops.crossplane.io": true, "watchoperations.ops.crossplane.io": true,
		"environments.platform.example.org": true, "xenvironments.platform.example.org": true,
		"buckets.cloud.example.org": true, "networks.cloud.example.org": true, "databases.cloud.example.org": true,
		"buckets.cloud.m.example.org": true, "networks.cloud.m.example.org": true, "databases.cloud.m.example.org": true,
	}

	reading := only(releaseReads)
	releases := func(r right) bool {
		return validate(r) || reading(r) || r.Verb == "patch" && patched[r.Resource+"."+r.Group] || r.Verb == "create" && r.Resource == "events" && r.Group == ""
	}

	return map[string]role{
		"Hold": {
			reason: "hold patches what it holds and reads the signing key. It creates and deletes nothing.",
			files:  []string{"rbac/validate.yaml", "rbac/hold.yaml"}, namespace: "velero", name: "velero-plugin-for-crossplane-hold",
			want: func(r right) bool {
				return validate(r) || patched[r.Resource+"."+r.Group] && (r.Verb == "patch" || r.Verb == "list" && r.Group == "ops.crossplane.io")
			},
			does: map[string]int{"hold --dry-run -n " + h.Namespace: 0, "hold --dry-run -A": asAdministrator}, cannot: map[string]int{"settings": 1},
			without: []string{"deployments"}, // As for validate.
		},
		"Wait": {
			reason: "A Pod that waits reads its XR or claim, in its own namespace.",
			files:  []string{"rbac/wait.yaml"}, namespace: h.Namespace, name: h.Name(0),
			want: func(r right) bool {
				return r.Verb == "list" && r.Resource == "environments" && r.Group == platform[0] && r.Namespace == h.Namespace
			},
			does:    map[string]int{"wait " + h.Name(0) + " -n " + h.Namespace + " --timeout 0": 0},
			cannot:  map[string]int{"wait -n " + elsewhere + " --timeout 0": 4, "wait --timeout 0": 4, "validate": 1},
			without: []string{"deployments"}, // A Pod need not see Crossplane's version.
		},
		"Validate": {
			reason: "validate reads everything that may be in a tree, and writes nothing.",
			files:  []string{"rbac/validate.yaml"}, namespace: "velero", name: "velero-plugin-for-crossplane-validate", want: validate,
			does: map[string]int{
				"validate -o wide": asAdministrator, "validate --strict -n " + h.Namespace: 0, "validate --strict --restore " + h.Namespace: 0,
				"wait --timeout 0 --restore " + h.Namespace: 0,
			},
			without: []string{"deployments"}, // Crossplane's has its version, which is optional in a report.
		},
		"Inspect": {
			reason: "The planning of a restore also reads single objects, and need not read all kinds of a backup.",
			files:  []string{"rbac/validate.yaml", "rbac/inspect.yaml"}, namespace: "velero", name: "velero-plugin-for-crossplane-inspect",
			want: func(r right) bool {
				return planning(r) || validate(r) || r.Verb == "get" && slices.Contains(platform, r.Group)
			},
			does: map[string]int{"inspect --against --strict " + backup: 0}, without: []string{"*"},
		},
		"Download": {
			reason: "A download by Velero's client needs the Backup, its location and a DownloadRequest.",
			files:  []string{"monitoring/download.yaml"}, namespace: "velero", name: "velero-backup-download",
			want: only(downloads), cannot: map[string]int{"settings": 1},
		},
		"Settings": {
			reason: "The command settings reads the objects that have them, and nothing of Crossplane's.",
			files:  []string{"rbac/settings.yaml"}, namespace: "velero", name: "velero-plugin-for-crossplane-settings",
			want: func(r right) bool {
				switch r.Resource + "." + r.Group {
				case "configmaps.":
					return r.Verb == "list" && r.Namespace == "velero"
				case "backups.velero.io", "restores.velero.io":
					return r.Verb == "get" && r.Namespace == "velero"
				default:
					return false
				}
			},
			does:   map[string]int{"settings": 0, "settings --restore " + h.Namespace: 0, "settings --backup " + h.Namespace: 0},
			cannot: map[string]int{"settings --velero-namespace " + elsewhere: 1, "validate": 1},
		},
		"Release": {
			reason: "release patches held objects, and neither creates nor deletes any.",
			files:  []string{"rbac/validate.yaml", "rbac/release.yaml"}, namespace: "velero", name: "velero-plugin-for-crossplane-release",
			want:    releases,
			does:    map[string]int{"release --restore leaked": 0, "validate --restore leaked": 0},
			without: []string{"secrets", "deployments"}, // It reads them only to explain a slow Crossplane, and to name its version.
		},
	}
}
