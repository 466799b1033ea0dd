package setting

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The example that people start from has every setting, with its default.
func TestExampleHasTheDefaults(t *testing.T) {
	b, err := os.ReadFile("../../example/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var example struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(b, &example); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{NameClone, NameCredentials, NameObserve, NameFromID, NameHold} {
		if _, ok := example.Data[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	got, err := Parse(example.Data, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Parse(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-default, +example:\n%s", diff)
	}
}
