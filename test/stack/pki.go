package stack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Crossplane, its functions and its providers expect these file names in a directory of
// certificates.
const (
	caFile   = "ca.crt"
	certFile = "tls.crt"
	keyFile  = "tls.key"
	// serviceAccountFile is the key that signs the tokens of service accounts.
	serviceAccountFile = "service-account.key"
)

const validity = 30 * 24 * time.Hour

// A pki is a directory with a CA's certificate and one certificate signed by it, for servers on
// this machine and their clients alike.
type pki struct {
	dir string
	ca  []byte
	tls *tls.Config // Of a client.
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the directory of certificates: %w", err)
	}
	template := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial),
			Subject:      pkix.Name{CommonName: name},
			NotBefore:    time.Now().Add(-time.Hour),
			NotAfter:     time.Now().Add(validity),
		}
	}

	ca := template(1, "stack")
	ca.IsCA, ca.BasicConstraintsValid = true, true
	ca.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	caKey, err := newKey()
	if err != nil {
		return nil, err
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the CA's certificate: %w", err)
	}

	leaf := template(2, "localhost")
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	leaf.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	leafKey, err := newKey()
	if err != nil {
		return nil, err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, leafKey.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the certificate for localhost: %w", err)
	}
	accountKey, err := newKey()
	if err != nil {
		return nil, err
	}

	p := &pki{dir: dir, ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})}
	leafPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER})
	leafKeyPEM, err := encodeKey(leafKey)
	if err != nil {
		return nil, err
	}
	accountKeyPEM, err := encodeKey(accountKey)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{caFile: p.ca, certFile: leafPEM, keyFile: leafKeyPEM, serviceAccountFile: accountKeyPEM} {
		if err := os.WriteFile(p.path(name), content, 0o600); err != nil {
			return nil, fmt.Errorf("cannot write %s: %w", name, err)
		}
	}

	pair, err := tls.X509KeyPair(leafPEM, leafKeyPEM)
	if err != nil {
		return nil, fmt.Errorf("cannot read back the certificate for localhost: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.ca)
	p.tls = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}

	return p, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}

	return key, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a key: %w", err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
