package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azpolicy "github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// azure is the backend of az:// addresses: the containers of one storage account of Azure. The account
// comes from the environment.
type azure struct {
	store   *Store
	account azureAccount
}

func newAzure(s *Store) (backend, error) {
	account, err := azureFromEnv()
	return &azure{store: s, account: account}, err
}

func (a *azure) host(*Object) string { return a.account.base.Host }

// CheckSigned returns an error if an az:// address holds a shared access signature, which would be
// taken for a part of the name, shown and kept.
func CheckSigned(address string) error {
	_, query, _ := strings.Cut(address, "?")
	if scheme, _ := Scheme(address); scheme == "az" && strings.Contains(strings.ToLower(query), "sig=") {
		return &Error{Kind: ErrUsage, Text: "the address holds a shared access signature",
			Hint: "set AZURE_STORAGE_SAS_TOKEN to it and leave it out, or name the file by its https:// address"}
	}
	return nil
}

// parseContainer splits az://CONTAINER/NAME.
func parseContainer(uri string) (container, name string, err error) {
	if err := CheckSigned(uri); err != nil {
		return "", "", err
	}
	return parseBucket(uri)
}

// container returns the client of a container. It makes no request.
func (a *azure) container(name string) (*container.Client, error) {
	options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Retry:     azpolicy.RetryOptions{MaxRetries: -1}, // the store's attempts do
		Telemetry: azpolicy.TelemetryOptions{ApplicationID: userAgent},
		Transport: azureTransport{a.store},
	}}
	u := a.account.base.JoinPath(name)
	u.RawQuery = a.account.signature
	var c *container.Client
	var err error
	if a.account.key != nil {
		c, err = container.NewClientWithSharedKeyCredential(u.String(), a.account.key, options)
	} else {
		c, err = container.NewClientWithNoCredential(u.String(), options)
	}
	if err != nil { // it may quote the address, which may be signed
		return nil, &Error{Kind: ErrUsage, Text: "the address of the container cannot be used",
			Hint: "check AZURE_STORAGE_BLOB_ENDPOINT"}
	}
	return c, nil
}

// blob returns the client of a blob. It makes no request.
func (a *azure) blob(uri string) (*blockblob.Client, error) {
	name, key, err := parseContainer(uri)
	if err != nil {
		return nil, err
	}
	c, err := a.container(name)
	if err != nil {
		return nil, err
	}
	return c.NewBlockBlobClient(key), nil
}

// azureTransport sends the requests of the library. It follows no redirect: the next server would
// learn the signature from the address of the last.
type azureTransport struct{ store *Store }

func (t azureTransport) Do(req *http.Request) (*http.Response, error) {
	resp, err := t.store.direct.Do(req)
	if err != nil {
		return nil, err
	}
	t.store.noteAnswer(req.URL.Host)
	if resp.StatusCode/100 != 2 || req.URL.Query().Has("comp") {
		resp.Body = &shortBody{ReadCloser: resp.Body, left: maxAnswer} // the library reads all of it
	}
	return resp, nil
}

// A shortBody is a body that must be short.
type shortBody struct {
	io.ReadCloser
	left int
}

func (b *shortBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, &Error{Kind: ErrUnreachable, Text: "the response is too long"}
	}
	return n, err
}

func (a *azure) get(ctx context.Context, o *Object, from, end int64) (*body, error) {
	client, err := a.blob(o.URI)
	if err != nil {
		return nil, err
	}
	opts := &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: from}}
	if end >= 0 {
		opts.Range.Count = end - from
	}
	if o.ETag != "" {
		tag := azcore.ETag(o.ETag)
		opts.AccessConditions = &blob.AccessConditions{
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &tag}}
	}
	resp, err := client.DownloadStream(ctx, opts)
	if err != nil {
		return nil, a.explain(ctx, o, err)
	}
	b := &body{ReadCloser: resp.Body, object: azureObject(o.URI, resp.ContentLength, resp.ETag, resp.LastModified)}
	if resp.ContentRange != nil {
		if err := b.begin(a.host(o), *resp.ContentRange, from); err != nil {
			resp.Body.Close()
			return nil, err
		}
	}
	return b, nil
}

// azureObject describes a blob. A list gives ETags without quotes, all other answers with them.
func azureObject(uri string, size *int64, tag *azcore.ETag, modified *time.Time) Object {
	o := Object{URI: uri, Size: -1}
	if size != nil {
		o.Size = *size
	}
	if tag != nil && len(*tag) <= 1024 {
		o.ETag = quotedTag(string(*tag))
	}
	if modified != nil {
		o.Modified = modified.UTC().Truncate(time.Second)
	}
	return o
}

func (a *azure) stat(ctx context.Context, uri string) (Object, error) {
	client, err := a.blob(uri)
	if err == nil {
		_, _, err = parseObject(uri)
	}
	if err != nil {
		return Object{}, err
	}
	var found blob.GetPropertiesResponse
	if err := a.try(ctx, func() error {
		found, err = client.GetProperties(ctx, nil)
		return err
	}); err != nil {
		return Object{}, err
	}
	for name, value := range found.Metadata {
		if strings.EqualFold(name, "hdi_isfolder") && value != nil && strings.EqualFold(*value, "true") {
			return Object{}, fs.ErrNotExist // a folder, which has a blob of its own
		}
	}
	return azureObject(uri, found.ContentLength, found.ETag, found.LastModified), nil
}

// azurePage is how many blobs a page of a list holds: at most 1 MB of XML.
const azurePage = 1000

func (a *azure) list(ctx context.Context, folder string, add func(string, Object) error) error {
	name, prefix, err := parseContainer(folder)
	if err != nil {
		return err
	}
	prefix = folderPrefix(prefix)
	c, err := a.container(name)
	if err != nil {
		return err
	}
	var turned pages
	opts := container.ListBlobsFlatOptions{Prefix: &prefix, MaxResults: new(int32(azurePage))}
	for {
		var page container.ListBlobsFlatResponse
		err := a.try(ctx, func() (err error) {
			page, err = c.NewListBlobsFlatPager(&opts).NextPage(ctx)
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			return a.noContainer() // Azure says the same of one that may not be seen
		}
		if err != nil {
			return err
		}
		if page.Segment != nil {
			for _, item := range page.Segment.BlobItems {
				if err := a.addItem(item, "az://"+name+"/", prefix, add); err != nil {
					return err
				}
			}
		}
		if page.NextMarker == nil || *page.NextMarker == "" {
			return nil
		}
		if err := turned.next(*page.NextMarker, a.host(nil)); err != nil {
			return err
		}
		opts.Marker = page.NextMarker
	}
}

// addItem calls add with a blob of a list, if it is not a folder.
func (a *azure) addItem(item *container.BlobItem, root, prefix string, add func(string, Object) error) error {
	if item == nil || item.Name == nil || item.Properties == nil || item.Properties.ContentLength == nil {
		return &Error{Kind: ErrUnreachable, Text: a.host(nil) + " lists a blob without its name or size"}
	}
	name := strings.TrimPrefix(*item.Name, prefix)
	kind := item.Properties.ResourceType
	if name == "" || kind != nil && *kind == "directory" {
		return nil
	}
	p := item.Properties
	return add(name, azureObject(root+*item.Name, p.ContentLength, p.ETag, p.LastModified))
}

// try repeats a request that fails for a passing reason.
func (a *azure) try(ctx context.Context, do func() error) error {
	return a.store.retry(ctx, a.host(nil), do, func(err error) error { return a.explain(ctx, nil, err) })
}

func (a *azure) noContainer() error {
	e := &Error{Kind: ErrNoBucket, Status: http.StatusNotFound, Text: a.host(nil) + " has no such container",
		Hint: "check the container's name and the account's"}
	if a.account.key == nil && a.account.signature == "" {
		e.Text += " that all may read"
		e.Hint += "; " + azureSetCredentials
	}
	return e
}

// explain makes an *Error of one of the library's, whose words quote addresses and answers.
func (a *azure) explain(ctx context.Context, o *Object, err error) error {
	if ctx.Err() != nil {
		return context.Canceled
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		e := transportError(err, a.host(o))
		if errors.As(err, new(*net.DNSError)) {
			e.Hint = "check the network and the account's name"
		}
		return e
	}
	return a.refusal(o, answer)
}

// refusal explains an answer that is not the one asked for.
func (a *azure) refusal(o *Object, answer *azcore.ResponseError) error {
	code := answer.StatusCode
	said := oneLine(answer.ErrorCode)
	e := &Error{Kind: ErrUnreachable, Status: code, Text: fmt.Sprintf("%s answers %s", a.host(o),
		cmp.Or(said, statusText(code)))}
	switch {
	case said == "ContainerNotFound", said == "ContainerBeingDeleted":
		return a.noContainer()
	case code == http.StatusNotFound:
		return fs.ErrNotExist
	case said == "InvalidResourceName", said == "OutOfRangeInput", said == "InvalidUri":
		e.Kind, e.Text, e.Hint = ErrUsage, "invalid container name or path ("+said+")",
			"write az://CONTAINER/PATH"
	case said == "BlobArchived", said == "BlobBeingRehydrated":
		e.Kind, e.Hint = ErrDenied, "the blob is archived: move it to the hot or cool tier first"
	case code == http.StatusPreconditionFailed && o != nil:
		return &ChangedError{"ETag", o.ETag, "another"}
	case code == http.StatusUnauthorized, code == http.StatusForbidden, said == "PublicAccessNotPermitted":
		e.Kind, e.Hint = ErrDenied, a.account.deniedHint()
	case passes(code):
		e.retry = true
		if answer.RawResponse != nil {
			e.wait = retryAfter(answer.RawResponse.Header, time.Now())
		}
	case code/100 == 3:
		e.Hint = "check AZURE_STORAGE_BLOB_ENDPOINT; redirects are not followed"
	}
	return e
}
