package xp

import "k8s.io/apimachinery/pkg/runtime/schema"

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

// Kinds of Crossplane's own that the plugin reads.
var (
	KindDefinition       = schema.GroupVersionKind{Group: GroupAPIExtensions, Version: "v1", Kind: "CompositeResourceDefinition"}
	KindFunction         = schema.GroupVersionKind{Group: GroupPackage, Version: "v1", Kind: "Function"}
	KindComposition      = schema.GroupVersionKind{Group: GroupAPIExtensions, Version: "v1", Kind: "Composition"}
	KindRevision         = schema.GroupVersionKind{Group: GroupAPIExtensions, Version: "v1", Kind: "CompositionRevision"}
	KindFunctionRevision = schema.GroupVersionKind{Group: GroupPackage, Version: "v1", Kind: "FunctionRevision"}
	KindProviderRevision = schema.GroupVersionKind{Group: GroupPackage, Version: "v1", Kind: "ProviderRevision"}
	KindRuntimeConfig    = schema.GroupVersionKind{Group: GroupPackage, Version: "v1beta1", Kind: "DeploymentRuntimeConfig"}
	// KindEnvironment is the kind of EnvironmentConfigs, which functions read.
	KindEnvironment = schema.GroupVersionKind{Group: GroupAPIExtensions, Version: "v1beta1", Kind: "EnvironmentConfig"}
	// KindManagedDefinition and KindActivationPolicy decide whether Crossplane v2 serves the kind of
	// an MR. A provider brings a ManagedResourceDefinition (MRD) for each kind. An active MRD makes
	// the CRD. If the provider has the capability safe-start, its MRDs are inactive until a policy or
	// a user activates them.
	KindManagedDefinition = schema.GroupVersionKind{Group: GroupAPIExtensions, Version: "v1alpha1", Kind: "ManagedResourceDefinition"}
	KindActivationPolicy  = schema.GroupVersionKind{Group: GroupAPIExtensions, Version: "v1alpha1", Kind: "ManagedResourceActivationPolicy"}
)

// Resources of these kinds.
var (
	ResourceXRD               = schema.GroupResource{Group: GroupAPIExtensions, Resource: "compositeresourcedefinitions"}
	ResourceComposition       = schema.GroupResource{Group: GroupAPIExtensions, Resource: "compositions"}
	ResourceRevision          = schema.GroupResource{Group: GroupAPIExtensions, Resource: "compositionrevisions"}
	ResourceEnvironment       = schema.GroupResource{Group: GroupAPIExtensions, Resource: "environmentconfigs"}
	ResourceManagedDefinition = schema.GroupResource{Group: GroupAPIExtensions, Resource: "managedresourcedefinitions"}
	ResourceActivationPolicy  = schema.GroupResource{Group: GroupAPIExtensions, Resource: "managedresourceactivationpolicies"}
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
	// ReasonAwaitingActivation is the reason on a provider revision that has no Deployment since none
	// of its MRDs is active (Crossplane v2.4 and later).
	ReasonAwaitingActivation = "AwaitingActivation"
)

// AnnotationRestoreStatus makes Velero restore the status of the object from the backup (velero
// pkg/restore/restore.go, determineRestoreStatus, since 1.16).
const AnnotationRestoreStatus = "velero.io/restore-status"
