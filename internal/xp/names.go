package xp

// Annotations, labels and finalizers that Crossplane reads and writes.
const (
	AnnotationPaused       = "crossplane.io/paused"
	AnnotationExternalName = "crossplane.io/external-name"
	AnnotationResourceName = "crossplane.io/composition-resource-name"
	// AnnotationCreatePending, Succeeded and Failed tell how far a provider is with creating something (crossplane-runtime pkg/meta).
	AnnotationCreatePending   = "crossplane.io/external-create-pending"
	AnnotationCreateSucceeded = "crossplane.io/external-create-succeeded"
	AnnotationCreateFailed    = "crossplane.io/external-create-failed"

	LabelComposite       = "crossplane.io/composite"
	LabelCompositionName = "crossplane.io/composition-name"
	LabelPackage         = "pkg.crossplane.io/package"
	LabelClaimNamespace  = "crossplane.io/claim-namespace"

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
	GroupProtection    = "protection.crossplane.io"
)

// Values that Crossplane gives to fields.
const (
	UpdateManual          = "Manual"
	SecretTypeConnection  = "connection.crossplane.io/v1alpha1"
	ConditionSynced       = "Synced"
	ReasonReconcilePaused = "ReconcilePaused"
)

// Fields of metadata that are on the backup's copy of an object only. No live object can have them: the API server drops fields of metadata that it
// does not know (k8s.io/apiextensions-apiserver pkg/apiserver/schema/objectmeta, GetObjectMeta), so unlike an annotation they can't be a tenant's,
// and a restore without this plugin leaves nothing of them.
const (
	// FieldTree is the ordered list of what a restore must bring back before the object, as "resource.group/namespace/name" (see Tree).
	FieldTree = "velero.crossplane.io/tree"
	// FieldDangling lists the resourceRefs of an XR that led nowhere, or to what another owner controls, when the backup was taken. A restore does
	// not wait for them.
	FieldDangling = "velero.crossplane.io/dangling"
)

// Annotations that make Velero take what an action asks for with an object also where the filters of the backup or restore leave it out. Anybody who
// may write an object can write them.
const (
	AnnotationMustInclude = "backup.velero.io/must-include-additional-items"
	AnnotationMustRestore = "restore.velero.io/must-include-additional-items"
)
