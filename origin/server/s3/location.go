package s3

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// ErrLocation is returned for the URL of a bucket that is invalid, and for missing credentials.
var ErrLocation = errors.New("invalid S3 settings")

// locationError is an ErrLocation with its text.
type locationError string

func (e locationError) Error() string { return string(e) }

// Unwrap returns ErrLocation.
func (locationError) Unwrap() error { return ErrLocation }

func locationErrorf(format string, args ...any) error {
	return locationError(fmt.Sprintf(format, args...))
}

// Location is the place of a bucket.
type Location struct {
	Host   string // host, with a port unless it is the scheme's
	Bucket string
	Secure bool // HTTPS
}

// Names of the settings in error texts.
const (
	accessVariable  = "AWS_ACCESS_KEY_ID"
	secretVariable  = "AWS_SECRET_ACCESS_KEY"
	sessionVariable = "AWS_SESSION_TOKEN"
	fileFlag        = "--s3-credentials FILE"
	form            = "https://HOST/BUCKET or http://HOST:PORT/BUCKET"
)

// ParseLocation reads the URL of a bucket, such as "https://s3.example.com/sightline". The error wraps ErrLocation and has no secret of
// the URL.
func ParseLocation(text string) (Location, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return Location{}, locationErrorf("the S3 URL cannot be read: write %s", form)
	case u.User != nil:
		return Location{}, locationErrorf("the S3 URL has credentials: remove them, and set %s and %s or %s", accessVariable, secretVariable, fileFlag)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return Location{}, locationErrorf("the S3 URL is not supported: write %s", form)
	}
	bucket := strings.Trim(u.Path, "/")
	switch {
	case bucket == "":
		return Location{}, locationErrorf("the S3 URL has no bucket: write %s", form)
	case strings.Contains(bucket, "/"):
		return Location{}, locationErrorf("the S3 URL has a path below the bucket, which is not supported: write %s", form)
	}
	if err := s3utils.CheckValidBucketNameStrict(bucket); err != nil {
		return Location{}, locationErrorf("S3 allows no bucket with the name %q: use 3 to 63 lower-case letters, digits and hyphens", bucket)
	}
	return Location{Host: u.Host, Bucket: bucket, Secure: u.Scheme == "https"}, nil
}

// String returns the URL of the bucket.
func (l Location) String() string {
	scheme := "http://"
	if l.Secure {
		scheme = "https://"
	}
	return scheme + l.Host + "/" + l.Bucket
}

// Credentials are an access key of the S3 server.
type Credentials struct {
	AccessKey, Secret string
	Session           string // token of temporary credentials; "": none
}

// String returns the access key without the secret, so that no log has it.
func (c Credentials) String() string { return c.AccessKey }

// GoString returns what String does.
func (c Credentials) GoString() string { return c.AccessKey }

// EnvCredentials returns the credentials in the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. lookup returns a
// variable, or "". If one of the first two is missing, the error wraps ErrLocation.
func EnvCredentials(lookup func(name string) string) (Credentials, error) {
	c := Credentials{AccessKey: lookup(accessVariable), Secret: lookup(secretVariable), Session: lookup(sessionVariable)}
	if c.AccessKey == "" || c.Secret == "" {
		return Credentials{}, locationErrorf("the S3 credentials are missing: set %s and %s, or %s", accessVariable, secretVariable, fileFlag)
	}
	return c, nil
}

// FileCredentials reads the profile "default" of a file in the format of ~/.aws/credentials. If the file or one of the two keys is
// missing, the error wraps ErrLocation.
func FileCredentials(name string) (Credentials, error) {
	if name == "" { // minio-go would read the user's file
		return Credentials{}, locationErrorf("the name of the S3 credentials file is empty")
	}
	v, err := (&credentials.FileAWSCredentials{Filename: name, Profile: "default"}).RetrieveWithCredContext(nil)
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		return Credentials{}, locationErrorf("the S3 credentials file cannot be read: %v", file)
	}
	if err != nil || v.AccessKeyID == "" || v.SecretAccessKey == "" { // the text of err may have a line of the file
		return Credentials{}, locationErrorf("S3 credentials file %s has no section [default] with aws_access_key_id and aws_secret_access_key", name)
	}
	return Credentials{AccessKey: v.AccessKeyID, Secret: v.SecretAccessKey, Session: v.SessionToken}, nil
}
