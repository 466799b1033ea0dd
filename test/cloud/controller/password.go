package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/common"
)

// A protected resource can have its password in a Secret.
type protected interface {
	PasswordKey() *common.SecretKey
}

// secrets reads and creates the Secrets with passwords. Its reads must include its last writes.
type secrets struct {
	reader client.Reader
	writer client.Client
}

// password returns the password of a managed resource, "" if it names no Secret. A missing one is
// created, as the providers that upjet generates do with the initializer PasswordGenerator: an
// existing database gets the new password.
func (s secrets) password(ctx context.Context, mg Managed) (string, error) {
	p, ok := mg.(protected)
	if !ok || p.PasswordKey() == nil {
		return "", nil
	}

	at := p.PasswordKey()
	name := types.NamespacedName{Namespace: cmp.Or(mg.GetNamespace(), at.Namespace), Name: at.Name}
	found := &corev1.Secret{}

	err := s.reader.Get(ctx, name, found)
	if err == nil && len(found.Data[at.Key]) > 0 {
		return string(found.Data[at.Key]), nil
	}

	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("cannot read the password of %s: %w", mg.GetName(), err)
	}

	made := rand.Text()
	if err == nil {
		found.Data = map[string][]byte{at.Key: []byte(made)}
		err = s.writer.Update(ctx, found)
	} else {
		err = s.writer.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: map[string][]byte{at.Key: []byte(made)},
		})
	}

	if err != nil {
		return "", fmt.Errorf("cannot make a password for %s: %w", mg.GetName(), err)
	}

	return made, nil
}
