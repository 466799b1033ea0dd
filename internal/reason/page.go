package reason

// documentation is where users read the documentation.
const documentation = "https://github.com/crossplane-contrib/velero-plugin-for-crossplane/blob/main/docs/"

// URL returns the address of the reason in the documentation.
func (r Reason) URL() string {
	return documentation + "messages.md#" + string(r.Code)
}
