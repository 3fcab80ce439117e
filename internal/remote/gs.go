package remote

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// gs is the backend of gs:// addresses: the JSON API of Google Cloud Storage.
//
//	GET    /storage/v1/b/BUCKET/o?prefix=…              objects, in pages
//	GET    /storage/v1/b/BUCKET/o/NAME                  what is known of one
//	GET    /storage/v1/b/BUCKET/o/NAME?alt=media        its bytes
//	POST   /upload/storage/v1/b/BUCKET/o?uploadType=media&name=NAME
//	DELETE /storage/v1/b/BUCKET/o/NAME
//
// An object's generation changes with every write, and serves as its ETag.
type gs struct {
	store *Store
	base  *url.URL
	local bool // an emulator, which takes no credentials

	once   sync.Once
	tokens oauth2.TokenSource // nil for anonymous requests
}

func newGS(s *Store) (backend, error) {
	text := os.Getenv("STORAGE_EMULATOR_HOST")
	g := &gs{store: s, local: text != ""}
	if text = cmp.Or(text, "https://storage.googleapis.com"); !strings.Contains(text, "://") {
		text = "http://" + text
	}
	var err error
	if g.base, err = url.Parse(strings.TrimRight(text, "/")); err != nil || g.base.Host == "" {
		return nil, &Error{Kind: ErrUsage, Text: "STORAGE_EMULATOR_HOST is not the address of a server",
			Hint: "set it to one such as http://127.0.0.1:4443"}
	}
	return g, nil
}

const gsScope = "https://www.googleapis.com/auth/devstorage.read_write"

// authorize adds a token of the application-default credentials, if there are any.
func (g *gs) authorize(req *http.Request) error {
	g.once.Do(func() {
		if g.local {
			return
		}
		ctx := context.WithValue(context.Background(), oauth2.HTTPClient, g.store.client)
		if found, err := google.FindDefaultCredentials(ctx, gsScope); err == nil { // else anonymous
			g.tokens = found.TokenSource
		}
	})
	if g.tokens == nil {
		return nil
	}
	token, err := g.tokens.Token()
	if err != nil {
		// the library quotes the answer, which may hold what was sent
		return &Error{Kind: ErrDenied, Text: "the application-default credentials give no token",
			Hint: "run gcloud auth application-default login, or check GOOGLE_APPLICATION_CREDENTIALS"}
	}
	token.SetAuthHeader(req)
	return nil
}

// request returns a request for an object, or for a bucket's objects where name is empty.
func (g *gs) request(ctx context.Context, method, api, bucket, name string, query url.Values) (*http.Request, error) {
	u := *g.base
	u.RawPath = strings.TrimSuffix(u.EscapedPath(), "/") + api + "/b/" + url.PathEscape(bucket) + "/o"
	if name != "" {
		u.RawPath += "/" + url.PathEscape(name)
	}
	u.Path, _ = url.PathUnescape(u.RawPath)
	u.RawQuery = query.Encode()
	req := newRequest(ctx, &u)
	req.Method = method
	req.Header.Set("Accept-Encoding", "gzip") // an object that is stored compressed comes as it is stored
	return req, g.authorize(req)
}

func (g *gs) host(*Object) string { return g.base.Host }

// refusal explains an unwanted answer.
func (g *gs) refusal(resp *http.Response) error {
	e := statusError(resp, g.base.Host)
	switch resp.StatusCode {
	case http.StatusNotFound:
		return fs.ErrNotExist
	case http.StatusUnauthorized, http.StatusForbidden:
		if e.Hint = "the application-default credentials may not read it: check the bucket's policy"; g.tokens == nil {
			e.Hint = "no credentials were found: run gcloud auth application-default login, " +
				"or set GOOGLE_APPLICATION_CREDENTIALS"
		}
	}
	return e
}

// ask sends a request, and repeats it while it fails for a passing reason.
func (g *gs) ask(ctx context.Context, request func() (*http.Request, error)) (*http.Response, error) {
	return g.store.ask(ctx, g.base.Host, request, func(resp *http.Response) error {
		if resp.StatusCode/100 == 2 {
			return nil
		}
		return g.refusal(resp)
	})
}

func (g *gs) get(ctx context.Context, o *Object, from, end int64) (*body, error) {
	bucket, name, err := parseBucket(o.URI)
	if err != nil {
		return nil, err
	}
	query := url.Values{"alt": {"media"}}
	if generation, err := strconv.Unquote(o.ETag); err == nil {
		query.Set("ifGenerationMatch", generation)
	}
	req, err := g.request(ctx, http.MethodGet, "/storage/v1", bucket, name, query)
	if err != nil {
		return nil, err
	}
	setRange(req.Header, from, end)
	resp, err := g.store.do(req)
	if err != nil {
		return nil, err
	}
	b, err := answer(resp, o.URI, from)
	if err != nil {
		resp.Body.Close()
		if resp.StatusCode == http.StatusPreconditionFailed {
			return nil, &ChangedError{"ETag", o.ETag, "another"}
		}
		return nil, g.refusal(resp)
	}
	// The answer's time and ETag are not those of the list; the generation is.
	b.object.Modified, b.object.ETag = o.Modified, ""
	if n := resp.Header.Get("X-Goog-Generation"); n != "" {
		b.object.ETag = strconv.Quote(n)
	}
	return b, nil
}

// gsObject is an object in an answer of the API.
type gsObject struct {
	Name       string    `json:"name"`
	Size       string    `json:"size"`
	Generation string    `json:"generation"`
	Updated    time.Time `json:"updated"`
}

func (g *gsObject) object(bucket string) (o Object, err error) {
	o = Object{URI: "gs://" + bucket + "/" + g.Name, Modified: g.Updated.UTC().Truncate(time.Second)}
	if g.Generation != "" {
		o.ETag = strconv.Quote(g.Generation)
	}
	o.Size, err = strconv.ParseInt(g.Size, 10, 64)
	return o, err
}

func (g *gs) stat(ctx context.Context, uri string) (Object, error) {
	bucket, name, err := parseObject(uri)
	if err != nil {
		return Object{}, err
	}
	var found gsObject
	err = g.json(ctx, bucket, name, url.Values{}, &found)
	if err != nil {
		return Object{}, err
	}
	return found.object(bucket)
}

// json requests the description of an object, or of a bucket's objects.
func (g *gs) json(ctx context.Context, bucket, name string, query url.Values, into any) error {
	resp, err := g.ask(ctx, func() (*http.Request, error) {
		req, err := g.request(ctx, http.MethodGet, "/storage/v1", bucket, name, query)
		if err == nil {
			req.Header.Set("Accept-Encoding", "identity")
		}
		return req, err
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return decodeJSON(resp, into)
}

func (g *gs) list(ctx context.Context, folder string, add func(string, Object) error) error {
	bucket, prefix, err := parseBucket(folder)
	if err != nil {
		return err
	}
	prefix = folderPrefix(prefix)
	var turned pages
	query := url.Values{"prefix": {prefix}, "maxResults": {"1000"},
		"fields": {"items(name,size,generation,updated),nextPageToken"}}
	for {
		var page struct {
			Items []gsObject `json:"items"`
			Next  string     `json:"nextPageToken"`
		}
		if err := g.json(ctx, bucket, "", query, &page); err != nil {
			return err
		}
		for i := range page.Items {
			name := strings.TrimPrefix(page.Items[i].Name, prefix)
			if name == "" {
				continue
			}
			o, err := page.Items[i].object(bucket)
			if err != nil {
				return &Error{Kind: ErrUnreachable, Text: fmt.Sprintf("%s gives no size of %s", g.base.Host,
					oneLine(name))}
			}
			if err := add(name, o); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		if err := turned.next(page.Next, g.base.Host); err != nil {
			return err
		}
		query.Set("pageToken", page.Next)
	}
}

func (g *gs) put(ctx context.Context, uri string, data io.ReaderAt, size int64, when Condition) (etag string,
	err error) {
	bucket, name, err := parseBucket(uri)
	if err != nil {
		return "", err
	}
	query := url.Values{"uploadType": {"media"}, "name": {name}}
	if generation, err := strconv.Unquote(when.ETag); err == nil {
		query.Set("ifGenerationMatch", generation)
	} else if when.Absent {
		query.Set("ifGenerationMatch", "0")
	}
	resp, err := g.ask(ctx, func() (*http.Request, error) {
		req, err := g.request(ctx, http.MethodPost, "/upload/storage/v1", bucket, "", query)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/octet-stream")
		req.Header.Set("Accept-Encoding", "identity")
		req.Body, req.ContentLength = io.NopCloser(io.NewSectionReader(data, 0, size)), size
		if size == 0 {
			req.Body = http.NoBody
		}
		return req, nil
	})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var stored gsObject
	if err := decodeJSON(resp, &stored); err != nil || stored.Generation == "" {
		return "", nil // it is stored; a later request describes it
	}
	return strconv.Quote(stored.Generation), nil
}

func (g *gs) remove(ctx context.Context, uri string) error {
	bucket, name, err := parseBucket(uri)
	if err != nil {
		return err
	}
	resp, err := g.ask(ctx, func() (*http.Request, error) {
		return g.request(ctx, http.MethodDelete, "/storage/v1", bucket, name, nil)
	})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
