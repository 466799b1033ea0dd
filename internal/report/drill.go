package report

import "time"

// KindDrill is the kind of the report of a drill.
const KindDrill = "Drill"

// A Drill is the result of a drill: a restore of the newest backup of a schedule into quarantine.
type Drill struct {
	Schedule string `json:"schedule"`
	// Restore is the name of its Restore; "" if there was no backup to restore.
	Restore string `json:"restore,omitempty"`
	// Backup is the newest Completed backup, and BackedUp when it began; "" and null if there is
	// none.
	Backup   string     `json:"backup,omitempty"`
	BackedUp *time.Time `json:"backedUp,omitempty"`
	Started  time.Time  `json:"started"`
	Ended    time.Time  `json:"ended"`
	Passed   bool       `json:"passed"`
	Problems int        `json:"problems"`
	Warnings int        `json:"warnings"`
	// Cluster is the UID of the cluster that ran it; "" if it may not be read.
	Cluster string `json:"cluster,omitempty"`
}
