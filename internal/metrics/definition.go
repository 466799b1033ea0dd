package metrics

// A Definition describes a metric family. All families are gauges.
type Definition struct {
	Name   string
	Help   string
	Labels []string
	// Of are the commands that print it.
	Of []string
}

// Commands, as the label command has them.
const (
	Validate = "validate"
	Inspect  = "inspect"
)

// Names of metric families. Alert rules and dashboards rely on them.
const (
	reportTime       = "crossplane_restore_report_timestamp_seconds"
	objects          = "crossplane_restore_objects"
	composed         = "crossplane_restore_composed_resources_adopted"
	held             = "crossplane_restore_held_objects"
	oldestHold       = "crossplane_restore_oldest_hold_timestamp_seconds"
	problems         = "crossplane_restore_problems"
	unsafe           = "crossplane_restore_backup_unsafe_managed_resources"
	adoptionDuration = "crossplane_restore_last_adoption_duration_seconds"
	adoptionTime     = "crossplane_restore_last_adoption_timestamp_seconds"
)

// Definitions returns all metric families. No label has the name of an object or namespace: a
// restore can hold thousands of them.
func Definitions() []Definition {
	reports := []string{Validate, Inspect}

	return []Definition{
		{reportTime, "When the command made these metrics.", []string{"command", "schedule"}, reports},
		{objects, "Claims, XRs, composed resources and MRs; an MR can also be composed.", []string{"command", "role"}, reports},
		{composed, "Composed resources that their XR lists and controls and that are not held.", []string{"command"}, reports},
		{held, "Held objects, by kind and the code of the problem.", []string{"command", "kind", "reason"}, reports},
		{oldestHold, "When the oldest hold on such objects began.", []string{"command", "kind", "reason"}, reports},
		{problems, "Problems and warnings, by code.", []string{"command", "code", "severity"}, reports},
		{unsafe, "MRs of a backup whose external resource is not certain, so that a restore holds them.", []string{"reason"}, []string{Inspect}},
		{adoptionDuration, "How long the newest ended Restore with operations of plugins took.", nil, []string{Validate}},
		{adoptionTime, "When the newest ended Restore with operations of plugins ended.", nil, []string{Validate}},
	}
}
