package server

import "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"

// tellOnce removes the connection from an answer if the cloud returns it only until it was read, as
// clouds do with the secret of an access key.
func (s *Server) tellOnce(op api.Op, r api.Resource) api.Resource {
	if r.Spec.Engine != api.EngineOnce || r.State != api.Available {
		return r
	}

	k := key{r.Kind, r.ID}
	if s.told[k] {
		r.Connection = nil
	}

	s.told[k] = s.told[k] || op == api.Read

	return r
}
