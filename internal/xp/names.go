package xp

// Annotations, labels and finalizers that Crossplane reads and writes.
const (
	AnnotationPaused = "crossplane.io/paused"
	// AnnotationLastApplied is the object as kubectl has applied it client-side.
	AnnotationLastApplied  = "kubectl.kubernetes.io/last-applied-configuration"
	AnnotationExternalName = "crossplane.io/external-name"
	AnnotationResourceName = "crossplane.io/composition-resource-name"
	// AnnotationReconcileRequested requests a reconcile each time that its value changes
	// (crossplane-runtime v2.3 pkg/meta). Older versions do not know it, but any change of an
	// object causes a reconcile.
	AnnotationReconcileRequested = "crossplane.io/reconcile-requested-at"
	// AnnotationCreatePending, Succeeded and Failed note how far the creation of an external
	// resource is (crossplane-runtime pkg/meta).
	AnnotationCreatePending   = "crossplane.io/external-create-pending"
	AnnotationCreateSucceeded = "crossplane.io/external-create-succeeded"
	AnnotationCreateFailed    = "crossplane.io/external-create-failed"
	// AnnotationDeletionAttempt is on an object whose deletion a Usage has refused (crossplane
	// internal/webhook/protection/usage). When a Usage with replayDeletion goes, Crossplane deletes
	// the object.
	AnnotationDeletionAttempt = "usage.crossplane.io/deletion-attempt-with-policy"

	LabelComposite       = "crossplane.io/composite"
	LabelCompositionName = "crossplane.io/composition-name"
	LabelPackage         = "pkg.crossplane.io/package"
	LabelClaimNamespace  = "crossplane.io/claim-namespace"
	// LabelInUse is on the objects that Usages protect. Crossplane's webhook handles deletions of
	// objects with this label only.
	LabelInUse = "crossplane.io/in-use"
	// LabelRestore and LabelBackup are Velero's labels on what a restore creates.
	LabelRestore = "velero.io/restore-name"
	LabelBackup  = "velero.io/backup-name"

	// FinalizerComposite is on every XR that was ever reconciled (crossplane
	// internal/controller/apiextensions/composite).
	FinalizerComposite = "composite.apiextensions.crossplane.io"
	// FinalizerClaim is on every claim that was ever reconciled (crossplane
	// internal/controller/apiextensions/claim).
	FinalizerClaim = "finalizer.apiextensions.crossplane.io"
	// FinalizerManaged is on every MR that was ever reconciled (crossplane-runtime
	// pkg/reconciler/managed).
	FinalizerManaged = "finalizer.managedresource.crossplane.io"
)

// API groups of Crossplane's own kinds.
const (
	GroupAPIExtensions = "apiextensions.crossplane.io"
	GroupPackage       = "pkg.crossplane.io"
	GroupOperations    = "ops.crossplane.io"
	GroupProtection    = "protection.crossplane.io"
)

// Values of fields, condition types and reasons of Crossplane.
const (
	UpdateManual         = "Manual"
	UpdateAutomatic      = "Automatic"
	SecretTypeConnection = "connection.crossplane.io/v1alpha1"
	ConditionSynced      = "Synced"
	ConditionReady       = "Ready"
	PolicyObserve        = "Observe"
	PolicyAll            = "*"
	ConditionEstablished = "Established"
	// ConditionHealthy is a package's condition. Since v2.0 a package revision has one for its
	// contents and one for its runtime instead.
	ConditionHealthy         = "Healthy"
	ConditionRevisionHealthy = "RevisionHealthy"
	ConditionRuntimeHealthy  = "RuntimeHealthy"
	// ConditionValidPipeline is a CompositionRevision's, since v2.0. Crossplane does not reconcile
	// an XR whose revision lacks it.
	ConditionValidPipeline = "ValidPipeline"
	ReasonReconcilePaused  = "ReconcilePaused"
	// ConditionResponsive is False with ReasonCircuitOpen on an XR whose events Crossplane drops,
	// since v2.1.
	ConditionResponsive = "Responsive"
	ReasonCircuitOpen   = "WatchCircuitOpen"
	// ConditionAsyncOperation and ConditionLastAsyncOperation are what upjet reports of its
	// asynchronous operations (upjet pkg/resource/conditions.go).
	ConditionAsyncOperation     = "AsyncOperation"
	ConditionLastAsyncOperation = "LastAsyncOperation"
	ReasonOngoing               = "Ongoing"
)

// Fields of metadata that only the backup's copy of an object has. The API server drops fields of
// metadata that it does not know (k8s.io/apiextensions-apiserver pkg/apiserver/schema/objectmeta,
// GetObjectMeta). So no live object has them, no tenant can write them, and a restore without this
// plugin leaves nothing of them.
const (
	// FieldFormat is the format of these fields, a number. The default is the first format
	// (docs/dev/architecture.md).
	FieldFormat = "velero.crossplane.io/format"
	// FieldRestoreFirst is the ordered list of what a restore must restore before the object, as
	// "resource.group/namespace/name" (see Item).
	FieldRestoreFirst = "velero.crossplane.io/restore-first"
	// FieldUnresolvedRefs lists the resourceRefs of an XR that were not live at the backup, or that
	// another owner controlled. A restore does not wait for them.
	FieldUnresolvedRefs = "velero.crossplane.io/unresolved-refs"
	// FieldConditions has the conditions of each composed resource of an XR that were True at the
	// backup. A restore waits until they are True again.
	FieldConditions = "velero.crossplane.io/composed-conditions"
	// FieldPublished is true if the backup has the connection secret of the object, in any
	// namespace. A restore waits for it.
	FieldPublished = "velero.crossplane.io/published"
	// FieldUnnamed is true for an MR that has no external-name and never gets one.
	FieldUnnamed = "velero.crossplane.io/unnamed"
	// FieldDoubted is true if other MRs of the kind contradict the rule that derives the
	// external-name from the id.
	FieldDoubted = "velero.crossplane.io/doubted"
	// FieldInputs lists the Secrets that the provider of an MR reads, and for each whether it was
	// live and whether the backup has it. A restore waits for those that were live.
	FieldInputs = "velero.crossplane.io/inputs"
	// FieldUIDs lists the objects whose UIDs a composed object has in its fields. They have other
	// UIDs after a restore.
	FieldUIDs = "velero.crossplane.io/uids"
)

// Annotations that make Velero include the additional items of an action despite the filters of the
// backup or restore. Any writer of an object can set them.
const (
	AnnotationMustInclude = "backup.velero.io/must-include-additional-items"
	AnnotationMustRestore = "restore.velero.io/must-include-additional-items"
)

// AnnotationRestoreStatus makes Velero restore the status of the object from the backup (velero
// pkg/restore/restore.go, determineRestoreStatus, since 1.16).
const AnnotationRestoreStatus = "velero.io/restore-status"
