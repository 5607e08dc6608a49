package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/certificate"
	"github.com/sightline-dev/sightline/origin/server/system"
)

func newCertificate(_ *server.Env) *cobra.Command {
	var (
		dir    string
		hosts  []string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "certificate",
		Short: "Create a TLS certificate for local development",
		Long: `Creates a certificate authority and a certificate for localhost, 127.0.0.1, ::1 and the given
hosts. Clients accept the certificate once they trust the authority, which can sign for these
hosts only. Run the command again to renew the certificate; a running server reloads it. Hosts
that the authority cannot sign for need a new authority, which the command creates too.`,
		Example: `  {prog} certificate
  {prog} certificate --host sightline.test --host 192.168.7.20
  {prog} serve --tls-cert certificates/certificate.pem --tls-key certificates/key.pem`,
		Args: server.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			fresh, err := certificate.CreateLocal(dir, hosts, system.Now(), system.Random)
			if errors.Is(err, certificate.ErrHost) {
				return server.Usagef("--host %w", err)
			}
			if err != nil {
				return err
			}
			path := func(name string) string { return filepath.Join(dir, name) }
			if asJSON {
				return server.NewJSONEncoder(cmd.OutOrStdout()).Encode(map[string]any{
					"authority": path(certificate.AuthorityFile), "authority_is_new": fresh,
					"certificate": path(certificate.CertificateFile), "key": path(certificate.KeyFile),
				})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), `Created a certificate in %s. Serve with

    %s serve --tls-cert %s --tls-key %s

`, dir, cmd.Root().Name(), path(certificate.CertificateFile), path(certificate.KeyFile))
			if err == nil && fresh {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), trust, path(certificate.AuthorityFile))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "certificates", "output `folder`; created if missing")
	cmd.Flags().StringArrayVar(&hosts, "host", nil, "additional host `name` or IP address; repeatable")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// trust explains how clients trust a new authority. Its argument is the path of the authority's certificate.
const trust = `The certificate authority is new. Trust it where clients run:

    one curl    curl --cacert %[1]s https://localhost:8080/…
    Python      REQUESTS_CA_BUNDLE=%[1]s
    Node        NODE_EXTRA_CA_CERTS=%[1]s
    Go          SSL_CERT_FILE=%[1]s
    Debian      sudo cp %[1]s /usr/local/share/ca-certificates/sightline.crt && sudo update-ca-certificates
    macOS       sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain %[1]s
    Windows     certutil -addstore -f ROOT %[1]s
    Firefox     Settings, Certificates, Authorities, Import

It can sign for these hosts only. Keep authority-key.pem secret, or delete it.
`
