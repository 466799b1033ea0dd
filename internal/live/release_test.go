package live

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A released object may be gone, with its kind, when its state is read.
func TestReadOfWhatIsGone(t *testing.T) {
	near, far := xptest.Claim("near"), xptest.Claim("far", xptest.In("team-b"))
	unserved := xptest.Object("gone.example.org/v1", "Gone", "team-a", "g")
	unservedFar := xptest.Object("gone.example.org/v1", "Gone", "team-b", "g")
	cases := map[string]struct {
		reason    string
		refs      []xp.Ref
		namespace string
		want      []string
	}{
		"Everywhere":    {reason: "The other kinds are read.", refs: []xp.Ref{xp.RefTo(unserved), xp.RefTo(near), xp.RefTo(far)}, want: []string{"far", "near"}},
		"InANamespace":  {reason: "The other kinds are read in one namespace too.", refs: []xp.Ref{xp.RefTo(unserved), xp.RefTo(near)}, namespace: "team-a", want: []string{"near"}},
		"Elsewhere":     {reason: "The other kinds are read in other namespaces too.", refs: []xp.Ref{xp.RefTo(unservedFar), xp.RefTo(near), xp.RefTo(far)}, namespace: "team-a", want: []string{"far", "near"}},
		"ObjectsGone":   {reason: "One object of many can be gone.", refs: []xp.Ref{xp.RefTo(xptest.Claim("gone")), xp.RefTo(near)}, want: []string{"near"}},
		"ElsewhereGone": {reason: "An object of another namespace can be gone too.", refs: []xp.Ref{xp.RefTo(xptest.Claim("gone", xptest.In("team-b"))), xp.RefTo(near)}, namespace: "team-a", want: []string{"near"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all, err := newServer(near, far).cluster().Read(t.Context(), tc.refs, tc.namespace)
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			var got []string
			for id := range all {
				got = append(got, id.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
