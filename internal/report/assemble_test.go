package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func TestAssemble(t *testing.T) {
	ref := func(kind, name string) xp.Ref { return xp.Ref{APIVersion: "example.org/v1", Kind: kind, Name: name} }
	mr := &Node{Ref: ref("Bucket", "b"), Role: RoleManaged, State: Adopted}
	held := &Node{Ref: ref("Bucket", "h"), Role: RoleManaged, State: Held}
	missing := &Node{Ref: ref("Bucket", "m"), Role: RoleOther, State: Missing}
	xr := &Node{Ref: ref("XOrder", "x"), Role: RoleComposite, State: Adopted, Children: []*Node{mr, held, missing}}
	trees := []*Node{{Ref: ref("Order", "o"), Role: RoleClaim, State: Adopted, Children: []*Node{xr}}}
	problems := []Problem{
		{Code: reason.NotReady, Severity: Warning, Object: mr.Ref},
		{Code: reason.Dangling, Severity: Error, Object: missing.Ref},
		// A kind in two versions is one kind.
		{Code: reason.IdentityMissing, Severity: Error, Object: xp.Ref{APIVersion: "example.org/v2", Kind: "Bucket", Name: "b"}},
	}
	var empty, r Report
	empty.Assemble(nil, nil)
	if empty.Trees == nil || empty.Problems == nil {
		t.Error("The JSON must have empty lists, not null.")
	}
	r.Assemble(trees, problems)

	want := Summary{Claims: 1, XRs: 1, Composed: 3, Managed: 2, Adopted: 1, Held: 1, Problems: 2, Warnings: 1}
	if diff := cmp.Diff(want, r.Summary); diff != "" {
		t.Errorf("the summary: %s", diff)
	}
	if diff := cmp.Diff([]reason.Code{reason.IdentityMissing, reason.NotReady}, mr.Problems); diff != "" {
		t.Errorf("a node must have its codes in order, the gravest first: %s", diff)
	}
	if diff := cmp.Diff([]reason.Code{reason.Dangling}, missing.Problems); diff != "" {
		t.Errorf("a missing node must have its code too: %s", diff)
	}
	if lax, strict := r.Failing(false), r.Failing(true); lax != 2 || strict != 3 {
		t.Errorf("only a strict check must count warnings; got %d and %d", lax, strict)
	}
}
