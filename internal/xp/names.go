package xp

// Annotations, labels and finalizers that Crossplane reads and writes.
const (
	AnnotationPaused       = "crossplane.io/paused"
	AnnotationExternalName = "crossplane.io/external-name"
	AnnotationResourceName = "crossplane.io/composition-resource-name"

	LabelComposite       = "crossplane.io/composite"
	LabelCompositionName = "crossplane.io/composition-name"

	// FinalizerComposite is on every XR that was reconciled (crossplane internal/controller/apiextensions/composite).
	FinalizerComposite = "composite.apiextensions.crossplane.io"
	// FinalizerClaim is on every claim that was reconciled (crossplane internal/controller/apiextensions/claim).
	FinalizerClaim = "finalizer.apiextensions.crossplane.io"
	// FinalizerManaged is on every MR that was reconciled (crossplane-runtime pkg/reconciler/managed).
	FinalizerManaged = "finalizer.managedresource.crossplane.io"
)

// Groups of Crossplane's own kinds.
const (
	GroupAPIExtensions = "apiextensions.crossplane.io"
	GroupPackage       = "pkg.crossplane.io"
	GroupOperations    = "ops.crossplane.io"
)

// Values that Crossplane gives to fields.
const (
	UpdateManual          = "Manual"
	SecretTypeConnection  = "connection.crossplane.io/v1alpha1"
	ConditionSynced       = "Synced"
	ReasonReconcilePaused = "ReconcilePaused"
)

// AnnotationTree is on the backup's copy of a claim or XR only: the ordered list of what a restore must bring back before it, as
// "resource.group/namespace/name" (see Tree). It is written over at each backup and taken off at each restore.
const AnnotationTree = "velero.crossplane.io/tree"

// AnnotationDangling is on the backup's copy of an XR only: the resourceRefs that led nowhere when the backup was taken, as a JSON list of
// Refs. A restore does not wait for them.
const AnnotationDangling = "velero.crossplane.io/dangling"
