package reason

// documentation is where users read the documentation.
const documentation = "https://github.com/crossplane-contrib/velero-plugin-for-crossplane/blob/main/docs/"

// URL returns the address of the reason in the documentation.
func (r Reason) URL() string {
	page := "messages.md"
	if r.Group == Report {
		page = "problems.md"
	}

	return documentation + page + "#" + string(r.Code)
}
