package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// s3 is the backend of s3:// addresses: S3 and stores that speak its protocol. Everything about the
// account comes from the environment and the files that Amazon's own tools read.
type s3 struct {
	store    *Store
	client   minio.Core
	endpoint string // without scheme
	signed   bool   // with credentials
}

func newS3(s *Store) (backend, error) {
	endpoint, secure, err := s3Endpoint()
	if err != nil {
		return nil, err
	}
	profile := cmp.Or(os.Getenv("AWS_PROFILE"), os.Getenv("AWS_DEFAULT_PROFILE"))
	// As Amazon's tools: environment, shared credentials file, and the role of the machine, container or pod. If they
	// hold nothing, requests are anonymous.
	chain := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{Profile: profile}}
	if hasRole() {
		chain = append(chain, &credentials.IAM{})
	}
	creds := credentials.NewChainCredentials(chain)
	lookup := minio.BucketLookupAuto
	switch os.Getenv("AWS_S3_ADDRESSING_STYLE") {
	case "path":
		lookup = minio.BucketLookupPath
	case "virtual":
		lookup = minio.BucketLookupDNS
	}
	client, err := minio.NewCore(endpoint, &minio.Options{Creds: creds, Secure: secure,
		Transport:    listTransport{s.client.Transport},
		Region:       cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), awsConfig(profile, "region")),
		BucketLookup: lookup, MaxRetries: 1})
	if err != nil {
		return nil, &Error{Kind: ErrUsage, Text: "the endpoint of S3 cannot be used: " + err.Error(),
			Hint: "check AWS_ENDPOINT_URL"}
	}
	client.SetAppInfo(userAgent, "1")
	value, err := creds.GetWithContext(&credentials.CredContext{Client: s.client, Endpoint: endpoint})
	return &s3{store: s, client: *client, endpoint: endpoint, signed: err == nil && value.AccessKeyID != ""}, nil
}

// s3Endpoint returns the host of S3 from the environment, and whether it uses TLS.
func s3Endpoint() (host string, secure bool, err error) {
	text := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	if text == "" || os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") == "true" {
		return "s3.amazonaws.com", true, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return "", false, &Error{Kind: ErrUsage, Text: "AWS_ENDPOINT_URL is not the address of a server",
			Hint: "set it to one such as https://s3.example.org"}
	}
	return u.Host, u.Scheme == "https", nil
}

// hasRole reports whether there may be a service that gives out the credentials of a role. Asking
// when there is none takes seconds.
func hasRole() bool {
	if firstEnv("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI") != "" {
		return true
	}
	if strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		return false
	}
	vendor, _ := os.ReadFile("/sys/devices/virtual/dmi/id/sys_vendor") // absent elsewhere
	return strings.HasPrefix(string(vendor), "Amazon")
}

// awsConfig reads a value of a profile from the configuration file of Amazon's tools, "" for none.
func awsConfig(profile, key string) string {
	home, _ := os.UserHomeDir() // without one there is no file
	data, err := os.ReadFile(cmp.Or(os.Getenv("AWS_CONFIG_FILE"), home+"/.aws/config"))
	if err != nil || len(data) > 1<<20 {
		return ""
	}
	section := "[default]"
	if profile != "" && profile != "default" {
		section = "[profile " + profile + "]"
	}
	inside := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			inside = line == section
		} else if name, value, ok := strings.Cut(line, "="); ok && inside && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (c *s3) host(*Object) string { return c.endpoint }

func (c *s3) get(ctx context.Context, o *Object, from, end int64) (*body, error) {
	bucket, key, err := parseBucket(o.URI)
	if err != nil {
		return nil, err
	}
	var opts minio.GetObjectOptions
	setRange(&opts, from, end)
	if o.ETag != "" {
		if err := opts.SetMatchETag(strings.Trim(o.ETag, `"`)); err != nil {
			return nil, err
		}
	}
	in, info, header, err := c.client.GetObject(ctx, bucket, key, opts)
	if err != nil {
		return nil, c.explain(ctx, o, err)
	}
	b := &body{ReadCloser: in, object: c.object(o.URI, &info)}
	b.object.Size = info.Size
	if text := header.Get("Content-Range"); text != "" {
		if err := b.begin(c.endpoint, text, from); err != nil {
			in.Close()
			return nil, err
		}
	}
	c.store.noteAnswer(c.endpoint)
	return b, nil
}

func (c *s3) object(uri string, info *minio.ObjectInfo) Object {
	o := Object{URI: uri, Size: info.Size, ETag: quotedTag(info.ETag)}
	if !info.LastModified.IsZero() {
		o.Modified = info.LastModified.UTC().Truncate(time.Second)
	}
	return o
}

func (c *s3) stat(ctx context.Context, uri string) (Object, error) {
	bucket, key, err := parseObject(uri)
	if err != nil {
		return Object{}, err
	}
	var info minio.ObjectInfo
	err = c.try(ctx, func() error {
		info, err = c.client.StatObject(ctx, bucket, key, minio.StatObjectOptions{})
		return err
	})
	if err != nil {
		return Object{}, err
	}
	return c.object(uri, &info), nil
}

func (c *s3) list(ctx context.Context, folder string, add func(string, Object) error) error {
	bucket, prefix, err := parseBucket(folder)
	if err != nil {
		return err
	}
	prefix = folderPrefix(prefix)
	root := "s3://" + bucket + "/"
	after := ""
	var failed error // add's
	err = c.try(ctx, func() error {
		paged := context.WithValue(ctx, pagesKey{}, new(pages))
		options := minio.ListObjectsOptions{Prefix: prefix, Recursive: true, StartAfter: after}
		for info := range c.client.Client.ListObjectsIter(paged, bucket, options) {
			if info.Err != nil {
				return info.Err
			}
			after = info.Key
			if name := strings.TrimPrefix(info.Key, prefix); name != "" {
				if failed = add(name, c.object(root+info.Key, &info)); failed != nil {
					return nil
				}
			}
		}
		return ctx.Err()
	})
	if failed != nil {
		return failed
	}
	return err
}

// try repeats a request while it fails for a passing reason.
func (c *s3) try(ctx context.Context, do func() error) error {
	err := c.store.retry(ctx, c.endpoint, do, func(err error) error { return c.explain(ctx, nil, err) })
	if err == nil {
		c.store.noteAnswer(c.endpoint)
	}
	return err
}

// explain converts an error of the library to an *Error, without keys and signatures.
func (c *s3) explain(ctx context.Context, o *Object, err error) error {
	if ctx.Err() != nil {
		return context.Canceled
	}
	if own, ok := errors.AsType[*Error](err); ok { // listTransport's
		return own
	}
	answer := minio.ToErrorResponse(err)
	if answer.StatusCode == 0 {
		return transportError(err, c.endpoint)
	}
	c.store.noteAnswer(c.endpoint)
	e := &Error{Kind: ErrUnreachable, Status: answer.StatusCode, Text: fmt.Sprintf("%s answers %s", c.endpoint,
		oneLine(cmp.Or(answer.Code, http.StatusText(answer.StatusCode))))}
	switch code := answer.StatusCode; {
	case answer.Code == "InvalidBucketName", answer.Code == "InvalidArgument" && code == http.StatusBadRequest:
		e.Kind, e.Text, e.Hint = ErrUsage, "invalid bucket name or path ("+answer.Code+")",
			"write s3://BUCKET/PATH"
	case answer.Code == "NoSuchBucket":
		e.Kind, e.Hint = ErrNoBucket, "check the bucket's name"
	case code == http.StatusNotFound:
		return fs.ErrNotExist
	case code == http.StatusPreconditionFailed && o != nil:
		return &ChangedError{"ETag", o.ETag, "another"}
	case code == http.StatusForbidden, code == http.StatusUnauthorized, answer.Code == "InvalidAccessKeyId",
		answer.Code == "SignatureDoesNotMatch":
		e.Kind = ErrDenied
		e.Hint = "check the credentials in the environment or the file of AWS_PROFILE, and the bucket's policy"
		if !c.signed {
			e.Hint = "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
		}
	case passes(code), answer.Code == "SlowDown", answer.Code == "RequestTimeout",
		answer.Code == "ConditionalRequestConflict": // two writes at once
		e.retry = true
	}
	return e
}

// maxSinglePut is the size from which an object is sent in several requests, which take no conditions.
const maxSinglePut = 5 << 30

func (c *s3) put(ctx context.Context, uri string, data io.ReaderAt, size int64, when Condition) (etag string,
	err error) {
	bucket, key, err := parseBucket(uri)
	if err != nil {
		return "", err
	}
	options := minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: size < maxSinglePut,
		PartSize: 64 << 20, NumThreads: 1}
	switch {
	case size >= maxSinglePut:
	case when.Absent:
		options.SetMatchETagExcept("*")
	case when.ETag != "":
		options.SetMatchETag(strings.Trim(when.ETag, `"`))
	}
	var info minio.UploadInfo
	err = c.try(ctx, func() (err error) {
		in := struct{ io.Reader }{io.NewSectionReader(data, 0, size)}
		info, err = c.client.Client.PutObject(ctx, bucket, key, in, size, options)
		return err
	})
	return quotedTag(info.ETag), err
}

func (c *s3) remove(ctx context.Context, uri string) error {
	bucket, key, err := parseBucket(uri)
	if err != nil {
		return err
	}
	return c.try(ctx, func() error {
		return c.client.RemoveObject(ctx, bucket, key, minio.RemoveObjectOptions{})
	})
}
