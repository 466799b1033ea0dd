package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	xpresource "github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/upjet/v2/pkg/terraform"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/apis/cluster/v1beta1"
	namespacedv1beta1 "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/apis/namespaced/v1beta1"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/cloud"
)

// setUp returns a function that sets up the Terraform provider for one managed resource. Its calls
// name that resource.
func setUp(cloudURL, clusterName string) terraform.SetupFn {
	return func(ctx context.Context, kube client.Client, mg xpresource.Managed) (terraform.Setup, error) {
		gvk, err := kube.GroupVersionKindFor(mg)
		if err != nil {
			return terraform.Setup{}, fmt.Errorf("cannot identify the caller: %w", err)
		}
		token, err := token(ctx, kube, mg)
		if err != nil {
			return terraform.Setup{}, err
		}
		name := mg.GetName()
		if ns := mg.GetNamespace(); ns != "" {
			name = ns + "/" + name
		}
		c := cloud.NewClient(cloudURL, map[string]string{
			"Authorization":               "Bearer " + token,
			"X-Cluster":                   clusterName,
			"X-Managed-By":                fmt.Sprintf("%s, %s, %s, %s", gvk.GroupVersion(), gvk.Kind, name, mg.GetUID()),
			"X-Composite":                 mg.GetLabels()["crossplane.io/composite"],
			"X-Composition-Resource-Name": mg.GetAnnotations()["crossplane.io/composition-resource-name"],
		})

		return terraform.Setup{
			Meta:              c,
			FrameworkProvider: cloud.NewFramework(c),
			ClientMetadata:    map[string]string{"account": cloud.Account},
		}, nil
	}
}

// token returns a managed resource's token for the cloud, from the JSON that its ProviderConfig
// names, as upjet's providers do.
func token(ctx context.Context, kube client.Client, mg xpresource.Managed) (string, error) {
	source, selectors, err := credentials(ctx, kube, mg)
	if err != nil {
		return "", err
	}
	if source == xpv1.CredentialsSourceNone {
		return "", nil
	}
	b, err := xpresource.CommonCredentialExtractor(ctx, source, kube, selectors)
	if err != nil {
		return "", fmt.Errorf("cannot extract credentials: %w", err)
	}
	found := struct {
		Token string `json:"token"`
	}{}
	if err := json.Unmarshal(b, &found); err != nil {
		return "", fmt.Errorf("cannot unmarshal credentials as JSON: %w", err)
	}
	if found.Token == "" {
		return "", errors.New("cannot find a token in the credentials")
	}

	return found.Token, nil
}

// credentials returns the source of a managed resource's credentials from its ProviderConfig, after
// it has recorded the usage.
func credentials(ctx context.Context, kube client.Client, mg xpresource.Managed) (xpv1.CredentialsSource, xpv1.CommonCredentialSelectors, error) {
	switch mg := mg.(type) {
	case xpresource.LegacyManaged:
		pc, ref := &clusterv1beta1.ProviderConfig{}, mg.GetProviderConfigReference()
		if ref == nil {
			return "", xpv1.CommonCredentialSelectors{}, errors.New("no providerConfigRef provided")
		}
		err := kube.Get(ctx, client.ObjectKey{Name: ref.Name}, pc)
		if err == nil {
			err = xpresource.NewLegacyProviderConfigUsageTracker(kube, &clusterv1beta1.ProviderConfigUsage{}).Track(ctx, mg)
		}

		return pc.Spec.Credentials.Source, pc.Spec.Credentials.CommonCredentialSelectors, wrap(err)
	case xpresource.ModernManaged:
		ref := mg.GetProviderConfigReference()
		if ref == nil {
			return "", xpv1.CommonCredentialSelectors{}, errors.New("no providerConfigRef provided")
		}
		spec, err := configOf(ctx, kube, *ref, mg.GetNamespace())
		if err == nil {
			err = xpresource.NewProviderConfigUsageTracker(kube, &namespacedv1beta1.ProviderConfigUsage{}).Track(ctx, mg)
		}

		return spec.Credentials.Source, spec.Credentials.CommonCredentialSelectors, wrap(err)
	default:
		return "", xpv1.CommonCredentialSelectors{}, fmt.Errorf("cannot find the ProviderConfig of a %T", mg)
	}
}

// configOf returns the spec of the ProviderConfig that a managed resource in a namespace names. A
// namespaced one names Secrets of that namespace only.
func configOf(ctx context.Context, kube client.Client, ref xpv1.ProviderConfigReference, namespace string) (namespacedv1beta1.ProviderConfigSpec, error) {
	if ref.Kind == "ClusterProviderConfig" {
		pc := &namespacedv1beta1.ClusterProviderConfig{}
		err := kube.Get(ctx, client.ObjectKey{Name: ref.Name}, pc)

		return pc.Spec, err //nolint:wrapcheck // The caller wraps it.
	}
	pc := &namespacedv1beta1.ProviderConfig{}
	err := kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, pc)
	if s := pc.Spec.Credentials.SecretRef; s != nil {
		s.Namespace = namespace
	}

	return pc.Spec, err //nolint:wrapcheck // As above.
}

func wrap(err error) error {
	if err != nil {
		return fmt.Errorf("cannot get the referenced ProviderConfig: %w", err)
	}

	return nil
}
