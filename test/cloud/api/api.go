// Package api is the HTTP API of a small cloud for tests: its resources, its journal, and a client.
// It imports only the standard library.
package api

import (
	"maps"
	"time"
)

// A Kind of resource.
type Kind string

// The kinds of resource.
const (
	// A Bucket has an ID that its creator chooses, as in most object stores. A second creation with
	// the same ID conflicts.
	Bucket Kind = "Bucket"

	// A Network gets its ID from the cloud. A second creation makes another one.
	Network Kind = "Network"

	// A Database gets its ID from the cloud too, and takes a while to become available.
	Database Kind = "Database"
)

// Kinds returns every kind of resource.
func Kinds() []Kind { return []Kind{Bucket, Network, Database} }

// A State a resource is in.
type State string

// The states of a resource.
const (
	Creating  State = "creating"
	Available State = "available"
)

// An Op is the operation of a call on one resource.
type Op string

// The operations.
const (
	Create Op = "create"
	Read   Op = "read"
	Update Op = "update"
	Delete Op = "delete"
)

// A Spec is the desired state of a resource. Each kind has some of these fields.
type Spec struct {
	Region string            `json:"region,omitempty"` // Bucket
	Tags   map[string]string `json:"tags,omitempty"`   // Bucket
	CIDR   string            `json:"cidr,omitempty"`   // Network
	Engine string            `json:"engine,omitempty"` // Database
	SizeGB int               `json:"sizeGB,omitempty"` // Database

	// Password of a Database, if the caller chooses it.
	Password string `json:"password,omitempty"`
}

// Equal reports whether both specs are the same. No tags and nil tags are the same.
func (s Spec) Equal(o Spec) bool {
	return s.Region == o.Region && maps.Equal(s.Tags, o.Tags) && s.CIDR == o.CIDR && s.Engine == o.Engine && s.SizeGB == o.SizeGB &&
		s.Password == o.Password
}

// EngineOnce is the engine of a Database whose connection the cloud returns only once.
const EngineOnce = "once"

// A Caller is the origin that a call's headers name.
type Caller struct {
	Cluster                 string `json:"cluster,omitempty"`                 // Header X-Cluster.
	ManagedBy               string `json:"managedBy,omitempty"`               // Header X-Managed-By.
	Composite               string `json:"composite,omitempty"`               // Header X-Composite.
	CompositionResourceName string `json:"compositionResourceName,omitempty"` // Header X-Composition-Resource-Name.
}

// A Connection is how to use a resource. It stays the same as long as the resource exists.
type Connection struct {
	Endpoint string `json:"endpoint"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// A Resource in the cloud.
type Resource struct {
	Kind        Kind        `json:"kind"`
	ID          string      `json:"id"`
	State       State       `json:"state"`
	Spec        Spec        `json:"spec"`
	Connection  *Connection `json:"connection,omitempty"` // Of an available Database.
	CreatedAt   time.Time   `json:"createdAt"`
	AvailableAt time.Time   `json:"availableAt"`
	CreatedBy   Caller      `json:"createdBy"` // The caller that created it.
	ManagedBy   Caller      `json:"managedBy"` // The last caller of any operation that sent X-Managed-By.
}

// An Entry of the journal is one call for one resource.
type Entry struct {
	Seq    int64     `json:"seq"` // Starts at 1, and has no gaps.
	Time   time.Time `json:"time"`
	Op     Op        `json:"op"`
	Kind   Kind      `json:"kind"`
	ID     string    `json:"id,omitempty"` // Empty if a create failed before the resource had an ID.
	Status int       `json:"status"`       // The HTTP status of the response.
	Caller
}

// A Fault makes the next Times calls fail that match it. A failed call only leaves an Entry.
type Fault struct {
	Op     Op     `json:"op,omitempty"`     // Empty matches every operation.
	Kind   Kind   `json:"kind,omitempty"`   // Empty matches every kind.
	By     string `json:"by,omitempty"`     // Matches if X-Managed-By contains it; empty matches every caller.
	Status int    `json:"status,omitempty"` // The HTTP status to respond with.
	Stall  bool   `json:"stall,omitempty"`  // Carry out the call, but delay the answer until all stalled calls are released.
	Times  int    `json:"times"`
	Linger bool   `json:"linger,omitempty"` // Accept a delete, and carry it out at that release.

	// After is how many matching calls of each caller succeed before one fails.
	After int `json:"after,omitempty"`
}
