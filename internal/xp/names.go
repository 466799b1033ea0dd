package xp

// Annotations, labels and finalizers that Crossplane reads and writes.
const (
	AnnotationPaused = "crossplane.io/paused"
	// AnnotationLastApplied is what somebody has applied client-side.
	AnnotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	// AnnotationPausedByGuard is on what the guard of this plugin has let in paused: that pause is
	// no person's.
	AnnotationPausedByGuard = "velero.crossplane.x-k8s.io/paused-by-guard"
	// AnnotationExchange is on what was paused to have what a backup knows in place of what was
	// composed anew: that pause is no person's either.
	AnnotationExchange     = "velero.crossplane.x-k8s.io/exchange"
	AnnotationExternalName = "crossplane.io/external-name"
	AnnotationResourceName = "crossplane.io/composition-resource-name"
	// AnnotationReconcileRequested asks for a reconcile each time that its value changes
	// (crossplane-runtime v2.3 pkg/meta). Before that Crossplane does not know it, but any change
	// of an object makes it look.
	AnnotationReconcileRequested = "crossplane.io/reconcile-requested-at"
	// AnnotationCreatePending, Succeeded and Failed tell how far a provider is with creating
	// something (crossplane-runtime pkg/meta).
	AnnotationCreatePending   = "crossplane.io/external-create-pending"
	AnnotationCreateSucceeded = "crossplane.io/external-create-succeeded"
	AnnotationCreateFailed    = "crossplane.io/external-create-failed"
	// AnnotationDeletionAttempt is on what somebody tried to delete while a Usage protected it
	// (crossplane internal/webhook/protection/usage). When a Usage with replayDeletion goes,
	// Crossplane deletes it.
	AnnotationDeletionAttempt = "usage.crossplane.io/deletion-attempt-with-policy"

	LabelComposite       = "crossplane.io/composite"
	LabelCompositionName = "crossplane.io/composition-name"
	LabelPackage         = "pkg.crossplane.io/package"
	LabelClaimNamespace  = "crossplane.io/claim-namespace"
	// LabelInUse is on what a Usage protects: Crossplane's webhook is asked about the deletion of
	// nothing else.
	LabelInUse = "crossplane.io/in-use"
	// LabelOwnerUID is on what was published with a secret store, and says by whom: Crossplane
	// refuses to publish in what another one's UID is on.
	LabelOwnerUID = "secret.crossplane.io/owner-uid"
	// LabelRestore and LabelBackup are what Velero writes on what a restore creates.
	LabelRestore = "velero.io/restore-name"
	LabelBackup  = "velero.io/backup-name"

	// FinalizerComposite is on every XR that was reconciled (crossplane
	// internal/controller/apiextensions/composite).
	FinalizerComposite = "composite.apiextensions.crossplane.io"
	// FinalizerClaim is on every claim that was reconciled (crossplane
	// internal/controller/apiextensions/claim).
	FinalizerClaim = "finalizer.apiextensions.crossplane.io"
	// FinalizerManaged is on every MR that was reconciled (crossplane-runtime
	// pkg/reconciler/managed).
	FinalizerManaged = "finalizer.managedresource.crossplane.io"
)

// Groups of Crossplane's own kinds.
const (
	GroupAPIExtensions = "apiextensions.crossplane.io"
	GroupPackage       = "pkg.crossplane.io"
	GroupOperations    = "ops.crossplane.io"
	GroupProtection    = "protection.crossplane.io"
	GroupSecrets       = "secrets.crossplane.io"
)

// Values that Crossplane gives to fields.
const (
	UpdateManual         = "Manual"
	UpdateAutomatic      = "Automatic"
	SecretTypeConnection = "connection.crossplane.io/v1alpha1"
	ConditionSynced      = "Synced"
	ConditionReady       = "Ready"
	PolicyObserve        = "Observe"
	PolicyAll            = "*"
	ConditionEstablished = "Established"
	// ConditionHealthy is a package's; from v2.0 on its revision has one for what it brings and one
	// for what runs it.
	ConditionHealthy         = "Healthy"
	ConditionRevisionHealthy = "RevisionHealthy"
	ConditionRuntimeHealthy  = "RuntimeHealthy"
	// ConditionValidPipeline of a CompositionRevision, from v2.0 on: without it Crossplane does not
	// reconcile.
	ConditionValidPipeline = "ValidPipeline"
	ReasonReconcilePaused  = "ReconcilePaused"
	// ConditionResponsive is False with ReasonCircuitOpen on an XR whose events Crossplane drops,
	// from v2.1 on.
	ConditionResponsive = "Responsive"
	ReasonCircuitOpen   = "WatchCircuitOpen"
)

// Fields of metadata that are on the backup's copy of an object only. No live object can have them:
// the API server drops fields of metadata that it does not know (k8s.io/apiextensions-apiserver
// pkg/apiserver/schema/objectmeta, GetObjectMeta), so unlike an annotation they can't be a
// tenant's, and a restore without this plugin leaves nothing of them.
const (
	// FieldFormat is the format of all of them, a number; without it, it is the first
	// (docs/formats.md).
	FieldFormat = "velero.crossplane.io/format"
	// FieldRestoreFirst is the ordered list of what a restore must bring back before the object, as
	// "resource.group/namespace/name" (see Tree).
	FieldRestoreFirst = "velero.crossplane.io/tree"
	// FieldUnresolvedRefs lists the resourceRefs of an XR that led nowhere, or to what another
	// owner controls, when the backup was taken. A restore does not wait for them.
	FieldUnresolvedRefs = "velero.crossplane.io/dangling"
	// FieldConditions says of what an XR composed which of its conditions were True when the backup
	// was taken. A restore waits until they are again.
	FieldConditions = "velero.crossplane.io/well"
	// FieldPublished is true if the backup has the connection secret of the object, wherever that
	// is. A restore waits for it.
	FieldPublished = "velero.crossplane.io/published"
	// FieldStored names the Secret of the backup that the object has published with a secret store,
	// or its StoreConfig if that store is not in the cluster.
	FieldStored = "velero.crossplane.io/stored"
	// FieldUnnamed is true if it was known that an MR has no external-name, and never will.
	FieldUnnamed = "velero.crossplane.io/unnamed"
	// FieldDoubted is true if the others of an MR's kind spoke against that its external-name is
	// the one that follows from what its provider calls it.
	FieldDoubted = "velero.crossplane.io/doubted"
	// FieldInputs lists the Secrets that an MR has its provider read, and says which of them there
	// were, and which the backup has. A restore waits for those that there were.
	FieldInputs = "velero.crossplane.io/inputs"
)

// Annotations that make Velero take what an action asks for with an object also where the filters
// of the backup or restore leave it out. Anybody who may write an object can write them.
const (
	AnnotationMustInclude = "backup.velero.io/must-include-additional-items"
	AnnotationMustRestore = "restore.velero.io/must-include-additional-items"
)

// AnnotationRestoreStatus makes Velero restore the status of the object that has it, as it is in
// the backup (velero pkg/restore/restore.go, determineRestoreStatus, from 1.16).
const AnnotationRestoreStatus = "velero.io/restore-status"
