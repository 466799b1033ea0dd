// Package cases reads the cases: folders, each with a world that the tests on the real stack back up,
// lose and restore. What a folder has beside case.yaml is what a drill.Scene has.
package cases

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
)

// A Case says what happens to a world, and in what the restored world may differ from the one
// before. Without a word all is as it was, object by object and field by field, nothing is created
// or deleted in the cloud, and bystanders are untouched. In case.yaml ${scene} is the case's name, and
// ${cloud}, ${upjet} and ${usages} are the groups of MRs and Usages, as in a scene. ${x} is X on v1, where it
// begins the kind of the XRs of claims.
type Case struct {
	// Name of the case, of its folder, and of the namespace of its objects.
	Name string `json:"-"`
	// Dir is the folder.
	Dir string `json:"-"`

	// Reason says what is right, in one sentence.
	Reason string `json:"reason"`
	// Versions of Crossplane: v2, v1.20. Differs gives what is otherwise on one of them.
	Versions []string `json:"versions"`
	// Tier is "matrix" if only "make matrix" runs the case.
	Tier    string                     `json:"tier,omitempty"`
	Differs map[string]json.RawMessage `json:"differs,omitempty"`

	// Count, Namespaces, Composed, Store, Drift and Kinds are those of a drill.Scene. Kinds are written as
	// Kind.version.group.
	Count      int      `json:"count,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	Composed   bool     `json:"composed,omitempty"`
	Store      string   `json:"store,omitempty"`
	Drift      bool     `json:"drift,omitempty"`
	Kinds      []string `json:"kinds,omitempty"`

	// Bare means that the target has nothing of the platform before the restore.
	Bare bool `json:"bare,omitempty"`
	// Unplugged means that the backup is made without the plugin.
	Unplugged bool `json:"unplugged,omitempty"`
	// Control means that the case is also restored by Velero alone, which must do damage.
	Control bool `json:"control,omitempty"`
	// Breaks means that a step stops a program that other cases need, so it is backed up after them, by name.
	Breaks bool `json:"breaks,omitempty"`
	// Alone says why the case has no bystanders; "" if it has.
	Alone string `json:"alone,omitempty"`

	// OwnNames is true if bystanders can't have the names of restored objects, since the cloud has but
	// one resource of a name.
	OwnNames bool `json:"ownNames,omitempty"`

	// Function means that the clusters have a Function of the case's own, function-${scene}.
	Function bool `json:"function,omitempty"`
	// Faults are what the cloud fails, of the calls for restored MRs, from the restore on until a step
	// recovers it. They are as in a step.
	Faults []api.Fault `json:"faults,omitempty"`

	// Backup and Restore are the arguments of the velero commands; the namespaces if empty.
	Backup  []string `json:"backup,omitempty"`
	Restore []string `json:"restore,omitempty"`

	// To is the namespace that the restore maps the case's to; "" if that comes back.
	To string `json:"to,omitempty"`
	// Tampered are changes of what the backup has, by somebody with access to the bucket.
	Tampered []Tampering `json:"tampered,omitempty"`

	// Theirs happens in the target once the bystanders are Ready. They must stay so.
	Theirs []Step `json:"theirs,omitempty"`
	// Made happens in the source once all is Ready; Before in the target, with the bystanders there;
	// Restoring once the Restore has begun; Restored once it has ended.
	Made      []Step `json:"made,omitempty"`
	Before    []Step `json:"before,omitempty"`
	Restoring []Step `json:"restoring,omitempty"`
	Restored  []Step `json:"restored,omitempty"`

	Expect Expectation `json:"expect,omitzero"`
}

// An Expectation is how a restored world deviates. Objects are named by patterns for "Kind.group
// namespace/name" or "Kind.group name", with path.Match's wildcards. A UID in a name is <NAME> of the object that has it.
type Expectation struct {
	// Phases of Backup, and of Restore; Completed if empty. Several are separated by |.
	BackupPhase string `json:"backupPhase,omitempty"`
	Phase       string `json:"phase,omitempty"`
	// BackupCodes and Codes are the reasons that the backup's log, and the restore's log or details, name.
	BackupCodes []string `json:"backupCodes,omitempty"`
	Codes       []string `json:"codes,omitempty"`
	// Reports are the codes of the problems that validate reports at the end.
	Reports []string `json:"reports,omitempty"`
	// Held maps the patterns of objects that end held to the reason in their marks.
	Held map[string]string `json:"held,omitempty"`
	// Changed maps patterns to the parts of a drill.Likeness that may differ.
	Changed map[string][]string `json:"changed,omitempty"`
	// Unready is true if some of it never is Ready, as before.
	Unready bool `json:"unready,omitempty"`
	// OldUIDs is true if the UID of an object in the source may stay in a name.
	OldUIDs bool `json:"oldUIDs,omitempty"`
	// Lost and New are objects that only the source or only the target has. What is lost must be.
	Lost []string `json:"lost,omitempty"`
	New  []string `json:"new,omitempty"`
	// Cloud counts the changes in the cloud, as "create Bucket", "update Bucket" or "delete Bucket".
	Cloud map[string]int `json:"cloud,omitempty"`
}

// A Tampering is a JSON patch of the items of a backup that a pattern is one of.
type Tampering struct {
	Of   string          `json:"of"`
	JSON json.RawMessage `json:"json"`
}

// Load returns the cases of a folder that run on a version of Crossplane, by name.
//
// It fails for a folder without case.yaml, an unknown field, and a case that says nothing of its
// reason or its versions.
func Load(dir, version string) (map[string]*Case, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the cases: %w", err)
	}
	all := map[string]*Case{}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		c, err := read(dir, e.Name(), version)
		if err != nil {
			return nil, err
		}
		if slices.Contains(c.Versions, version) {
			all[c.Name] = c
		}
	}

	for name := range all {
		if strings.HasPrefix(name, "others-") || strings.HasPrefix(name, "alone-") {
			return nil, fmt.Errorf("cannot tell the objects of case %s from bystanders and controls by their names", name)
		}
		for other := range all {
			if strings.HasPrefix(other, name+"-") {
				return nil, fmt.Errorf("cannot tell the objects of case %s from those of %s by their names", name, other)
			}
		}
	}

	return all, nil
}

// Plain reports whether nobody does anything in the case but back up and restore, and all comes back.
func (c *Case) Plain() bool {
	acted := len(c.Theirs) + len(c.Made) + len(c.Before) + len(c.Restoring) + len(c.Restored) + len(c.Faults) + len(c.Tampered)

	return acted == 0 && !c.Bare && !c.Unplugged && !c.Breaks && c.To == "" && reflect.ValueOf(c.Expect).IsZero()
}

// forget drops the steps that a version has others for: they would be mixed with those.
func (c *Case) forget(on json.RawMessage) {
	other := &Case{}
	if err := yaml.Unmarshal(on, other); err != nil {
		return // It is read again, strictly.
	}
	for steps, others := range map[*[]Step][]Step{
		&c.Theirs: other.Theirs, &c.Made: other.Made, &c.Before: other.Before, &c.Restoring: other.Restoring, &c.Restored: other.Restored,
	} {
		if others != nil {
			*steps = nil
		}
	}
}

func read(dir, name, version string) (*Case, error) {
	c := &Case{Name: name, Dir: filepath.Join(dir, name)}
	b, err := os.ReadFile(filepath.Join(c.Dir, "case.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot read case %s: %w", name, err)
	}
	x, scope, usages := "", "m.", "protection.crossplane.io"
	if version == "v1.20" {
		x, scope, usages = "X", "", "apiextensions.crossplane.io"
	}
	b = []byte(strings.NewReplacer(
		"${scene}", name, "${x}", x, "${cloud}", "cloud."+scope+"example.org", "${upjet}", "upjet."+scope+"example.org", "${usages}", usages,
	).Replace(string(b)))
	if err := yaml.UnmarshalStrict(b, c); err != nil {
		return nil, fmt.Errorf("cannot parse case %s: %w", name, err)
	}
	if on, ok := c.Differs[version]; ok {
		c.forget(on)
		if err := yaml.UnmarshalStrict(on, c); err != nil {
			return nil, fmt.Errorf("cannot parse case %s on %s: %w", name, version, err)
		}
	}
	if c.Reason == "" || len(c.Versions) == 0 {
		return nil, fmt.Errorf("cannot run case %s: it needs a reason and versions", name)
	}

	return c, nil
}
