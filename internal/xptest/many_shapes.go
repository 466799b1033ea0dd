package xptest

// The objects of Many, as an API server returns them and the plugin's backup stores them. Words
// with a dollar sign are placeholders.
const (
	manyFieldsComposed = `"managedFields":[{"apiVersion":"$group/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":` +
		`{"f:crossplane.io/composition-resource-name":{}},"f:generateName":{},"f:labels":{"f:crossplane.io/composite":{}},"f:ownerReferences":` +
		`{"k:{\"uid\":\"$xruid\"}":{}}},"f:spec":{"f:forProvider":{"f:cidr":{},"f:engine":{},"f:engineVersion":{},"f:multiZone":{},"f:region":{},"f:sizeGB":{},` +
		`"f:subnetIds":{},"f:tags":{"f:costCentre":{},"f:team":{}}},"f:providerConfigRef":{"f:kind":{},"f:name":{}}}},"manager":` +
		`"apiextensions.crossplane.io/composed/ec8df5ad2ee77d93bf90b98f75dc83245a8f2c43acb8ae4f5f6a1ba9339dd577","operation":"Apply","time":"$at"},` +
		`{"apiVersion":"$group/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{"f:crossplane.io/external-create-pending":{},` +
		`"f:crossplane.io/external-create-succeeded":{},"f:crossplane.io/external-name":{}},"f:finalizers":{".":{},` +
		`"v:\"finalizer.managedresource.crossplane.io\"":{}}}},"manager":"provider-cloud","operation":"Update","time":"$at"},{"apiVersion":"$group/v1alpha1",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:atProvider":{".":{},"f:arn":{},"f:cidr":{},"f:endpoint":{},"f:engine":{},"f:engineVersion":{},` +
		`"f:id":{},"f:region":{},"f:sizeGB":{},"f:state":{},"f:subnetIds":{},"f:tags":{}},"f:conditions":{".":{},"k:{\"type\":\"LastAsyncOperation\"}":{".":{},` +
		`"f:lastTransitionTime":{},"f:reason":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:reason":{},` +
		`"f:status":{},"f:type":{}},"k:{\"type\":\"Synced\"}":{".":{},"f:lastTransitionTime":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},` +
		`"f:type":{}}}}},"manager":"provider-cloud","operation":"Update","subresource":"status","time":"$at"}]`

	manyMR = `{"apiVersion":"$group/v1alpha1","kind":"$mrkind","metadata":{"annotations":{"crossplane.io/composition-resource-name":"resource-$c",` +
		`"crossplane.io/external-create-pending":"2026-01-02T03:04:05Z","crossplane.io/external-create-succeeded":"2026-01-02T03:04:06Z",$annotation` +
		`"upjet.crossplane.io/provider-meta":"null"},"creationTimestamp":"$at","finalizers":["finalizer.managedresource.crossplane.io"],"generateName":"$tree-",` +
		`"generation":2,"labels":{"crossplane.io/composite":"$tree"},` + manyFieldsComposed + `,"name":"$mr",$field"ownerReferences":[{"apiVersion":"$apiVersion",` +
		`"blockOwnerDeletion":true,"controller":true,"kind":"$kind","name":"$tree","uid":"$xruid"}],"resourceVersion":"997$n","uid":"$uid"},"spec":{` +
		`"forProvider":{"cidr":"10.$c.0.0/16","engine":"postgres","engineVersion":"16.4","multiZone":true,"region":"eu-central","sizeGB":20,"subnetIds":` +
		`["subnet-$n-a","subnet-$n-b"],"tags":{"costCentre":"4711","team":"$namespace"}},"managementPolicies":["*"],"providerConfigRef":{"kind":` +
		`"ClusterProviderConfig","name":"default"}$publishes},"status":{"atProvider":{"arn":"arn:cloud:$mrkind:eu-central:123456789012:$external","cidr":` +
		`"10.$c.0.0/16","endpoint":"$external.cloud.example.org:5432","engine":"postgres","engineVersion":"16.4","id":"$external","region":"eu-central",` +
		`"sizeGB":20,"state":"available","subnetIds":["subnet-$n-a","subnet-$n-b"],"tags":{"costCentre":"4711","team":"$namespace"}},"conditions":[{` +
		`"lastTransitionTime":"$at","reason":"Available","status":"True","type":"Ready"},{"lastTransitionTime":"$at","observedGeneration":2,"reason":` +
		`"ReconcileSuccess","status":"True","type":"Synced"},{"lastTransitionTime":"$at","reason":"Success","status":"True","type":"LastAsyncOperation"}]}}`

	manyFieldsXR = `"managedFields":[{"apiVersion":"$apiVersion","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:cidr":{},"f:crossplane":{` +
		`"f:compositionRef":{"f:name":{}}},"f:region":{}}},"manager":"argocd","operation":"Apply","time":"$at"},{"apiVersion":"$apiVersion","fieldsType":` +
		`"FieldsV1","fieldsV1":{"f:spec":{"f:crossplane":{"f:resourceRefs":{}}}},"manager":"apiextensions.crossplane.io/composite","operation":"Apply","time":` +
		`"$at"},{"apiVersion":"$apiVersion","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},` +
		`"f:lastTransitionTime":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Responsive\"}":{".":{},` +
		`"f:lastTransitionTime":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Synced\"}":{".":{},` +
		`"f:observedGeneration":{},"f:type":{}}}}},"manager":"apiextensions.crossplane.io/composite","operation":"Apply","subresource":"status","time":"$at"}]`

	manyConditions = `"conditions":[{"lastTransitionTime":"$at","observedGeneration":3,"reason":"ReconcileSuccess","status":"True","type":"Synced"},{` +
		`"lastTransitionTime":"$at","observedGeneration":3,"reason":"Available","status":"True","type":"Ready"},{"lastTransitionTime":"$at",` +
		`"observedGeneration":3,"reason":"WatchCircuitClosed","status":"True","type":"Responsive"}]`

	manyXR = `{"apiVersion":"$apiVersion","kind":"$kind","metadata":{"creationTimestamp":"$at","finalizers":["composite.apiextensions.crossplane.io"],` +
		`"generation":3,"labels":{"crossplane.io/composite":"$tree"},` + manyFieldsXR + `,"name":"$tree","namespace":"$namespace","resourceVersion":"1053",` +
		`"uid":"$xruid","velero.crossplane.io/restore-first":["compositionrevisions.apiextensions.crossplane.io//environments-$revision",` +
		`"compositions.apiextensions.crossplane.io//environments","compositeresourcedefinitions.apiextensions.crossplane.io//environments.platform.example.org"],` +
		`"velero.crossplane.io/composed-conditions":[$well]},` +
		`"spec":{"cidr":"10.0.0.0/16","crossplane":{"compositionRef":{"name":"environments"},"compositionRevisionRef":` +
		`{"name":"environments-$revision"},"compositionUpdatePolicy":"Automatic","resourceRefs":[$refs]},"region":"eu-central"},"status":{` + manyConditions + `}}`

	manyLegacyXR = `{"apiVersion":"$apiVersion","kind":"$kind","metadata":{"creationTimestamp":"$at","finalizers":["composite.apiextensions.crossplane.io"],` +
		`"generation":3,"labels":{"crossplane.io/claim-name":"$tree","crossplane.io/claim-namespace":"$namespace","crossplane.io/composite":"$tree"},` +
		manyFieldsXR + `,"name":"$tree","resourceVersion":"1079","uid":"$xruid","velero.crossplane.io/restore-first":[` +
		`"compositionrevisions.apiextensions.crossplane.io//xenvironments-$revision","compositions.apiextensions.crossplane.io//xenvironments",` +
		`"compositeresourcedefinitions.apiextensions.crossplane.io//xenvironments.legacy.example.org"],"velero.crossplane.io/composed-conditions":[$well]},"spec":{` +
		`"cidr":"10.0.0.0/16","claimRef":{"apiVersion":"legacy.example.org/v1alpha1","kind":"Environment","name":"$tree","namespace":"$namespace"},` +
		`"compositionRef":{"name":"xenvironments"},"compositionRevisionRef":{"name":"xenvironments-$revision"},"compositionUpdatePolicy":"Automatic","region":` +
		`"eu-central","resourceRefs":[$refs]},"status":{` + manyConditions + `,"connectionDetails":{"lastPublishedTime":"$at"}}}`

	manyClaim = `{"apiVersion":"legacy.example.org/v1alpha1","kind":"Environment","metadata":{"creationTimestamp":"$at","finalizers":` +
		`["finalizer.apiextensions.crossplane.io"],"generation":3,` + manyFieldsXR + `,"name":"$tree","namespace":"$namespace","resourceVersion":"1080","uid":` +
		`"$uid","velero.crossplane.io/restore-first":["xenvironments.legacy.example.org//$tree",$list]},"spec":{"cidr":"10.0.0.0/16","compositionRef":{"name":` +
		`"xenvironments"},"compositionRevisionRef":{"name":"xenvironments-$revision"},"compositionUpdatePolicy":"Automatic","region":"eu-central","resourceRef":` +
		`{"apiVersion":"legacy.example.org/v1alpha1","kind":"XEnvironment","name":"$tree"}},"status":{` + manyConditions + `}}`

	manySecret = `{"apiVersion":"v1","data":{"endpoint":"ZGItYjlhMTk4MzFkNmZjLmRhdGFiYXNlcy5jbG91ZC5leGFtcGxlLm9yZzo1NDMy","password":"MzZlMTcwNjFiZDU4",` +
		`"username":"YWRtaW4="},"kind":"Secret","metadata":{"creationTimestamp":"$at","managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{` +
		`"f:data":{".":{},"f:endpoint":{},"f:password":{},"f:username":{}},"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"$owner\"}":{}}},"f:type":{}},` +
		`"manager":"provider-cloud","operation":"Update","time":"$at"}],"name":"$secret","namespace":"$in","ownerReferences":[{"apiVersion":"$group/v1alpha1",` +
		`"blockOwnerDeletion":true,"controller":true,"kind":"Database","name":"$mr","uid":"$owner"}],"resourceVersion":"992$n","uid":"$uid"},"type":` +
		`"connection.crossplane.io/v1alpha1"}`

	manyConfigMap = `{"apiVersion":"v1","data":{"application.properties":"region=eu-central\nteam=$namespace\nenvironment=$tree\nlog.level=info\n` +
		`database.pool=20\nfeature.flags=a,b,c\n"},"kind":"ConfigMap","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":` +
		`"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"settings-$n\",\"namespace\":\"$namespace\"}}\n"},"creationTimestamp":"$at",` +
		`"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:application.properties":{}},"f:metadata":{"f:annotations":{` +
		`".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}},"manager":"kubectl-client-side-apply","operation":"Update","time":"$at"}],"name":` +
		`"settings-$n","namespace":"$namespace","resourceVersion":"656$n","uid":"$uid"}}`

	manyEvent = `{"apiVersion":"v1","count":3,"eventTime":null,"firstTimestamp":"$at","involvedObject":{"apiVersion":"$apiVersion","kind":"$kind","name":` +
		`"$tree","namespace":"$namespace","resourceVersion":"998$n"` +
		`,"uid":"$xruid"},"kind":"Event","lastTimestamp":"$at","message":"Successfully composed resources: ` +
		`10 of 10 are ready","metadata":{"creationTimestamp":"$at","managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:count":{},` +
		`"f:firstTimestamp":{},"f:involvedObject":{},"f:lastTimestamp":{},"f:message":{},"f:reason":{},"f:reportingComponent":{},"f:source":{"f:component":{}},` +
		`"f:type":{}},"manager":"crossplane","operation":"Update","time":"$at"}],"name":"$event","namespace":"$namespace","resourceVersion":"999$n","uid":"$uid"` +
		`},"reason":"ComposeResources","reportingComponent":"defined/compositeresourcedefinition.apiextensions.crossplane.io","reportingInstance":"","source":{` +
		`"component":"defined/compositeresourcedefinition.apiextensions.crossplane.io"},"type":"Normal"}`

	manyNamespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"kubernetes.io/metadata.name":` +
		`"$name"},"name":"$name","resourceVersion":"300","uid":"$uid"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`

	manyCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","name":"$name",` +
		`"resourceVersion":"200","uid":"$uid"},"spec":{"group":"$group","names":{"kind":"$kind","listKind":"$kindList","plural":"$plural"},"scope":"$scope",` +
		`"versions":[{"name":"v1alpha1","schema":{"openAPIV3Schema":{"properties":{"spec":{"properties":{$fields},"type":"object"}},"type":"object"}},` +
		`"served":true,"storage":true}]}}`

	manyXRD = `{"apiVersion":"apiextensions.crossplane.io/$version","kind":"CompositeResourceDefinition","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z",` +
		`"finalizers":["defined.apiextensions.crossplane.io"],"name":"$name","resourceVersion":"400","uid":"$uid"},"spec":{$claims"group":"$group","names":{` +
		`"kind":"$kind","plural":"$plural"},$scope"versions":[{"name":"v1alpha1","referenceable":true,"schema":{"openAPIV3Schema":{"properties":{"spec":{` +
		`"properties":{"cidr":{"type":"string"},"region":{"type":"string"}},"type":"object"}},"type":"object"}},"served":true}]},"status":{"conditions":[{` +
		`"lastTransitionTime":"2026-01-02T03:04:05Z","reason":"WatchingCompositeResource","status":"True","type":"Established"}]}}`

	manyComposition = `{"apiVersion":"apiextensions.crossplane.io/v1","kind":"$kind","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","labels":{` +
		`"crossplane.io/composition-name":"$composition"},"name":"$name",$owner"resourceVersion":"500","uid":"$uid"},"spec":{"compositeTypeRef":{"apiVersion":` +
		`"$group/v1alpha1","kind":"$of"},"mode":"Pipeline","pipeline":[{"functionRef":{"name":"function-patch-and-transform"},"input":{"apiVersion":` +
		`"pt.fn.crossplane.io/v1beta1","kind":"Resources","resources":[$resources]},"step":"compose"}],$revision"writeConnectionSecretsToNamespace":` +
		`"crossplane-system"}}`
)
