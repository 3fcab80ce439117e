package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/remote/remotetest"
)

// setEnv sets variables, after those of Azure were unset.
func setEnv(t *testing.T, env ...string) {
	t.Helper()
	for _, e := range append(remotetest.NoAzure(), env...) {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
}

// newBlobs returns a server of blobs and a store that reads them.
func newBlobs(t *testing.T) (*remotetest.Server, *Store) {
	t.Helper()
	srv := remotetest.NewBlobs()
	setEnv(t, "AZURE_STORAGE_BLOB_ENDPOINT="+srv.URL)
	return srv, newStore(t, srv)
}

// Whatever fault comes, the bytes are those of the blob, or an error says what happened.
func TestAzureFaults(t *testing.T) {
	data := content(3*megabyte + 17)
	other := bytes.Clone(data)
	other[2*megabyte] ^= 1
	busy := http.Header{"Retry-After": {"0.1"}}
	srv, s := newBlobs(t)
	put := func(data []byte) func() {
		return func() { srv.Put("/con/f", remotetest.File{Data: data}) }
	}
	for name, c := range map[string]struct {
		faults []remotetest.Fault
		want   error // nil: the bytes
		says   string
	}{
		"none":   {},
		"drops":  {faults: []remotetest.Fault{{Drop: 1}, {Drop: megabyte}, {Drop: 100_000}}},
		"errors": {faults: []remotetest.Fault{{Status: 500}, {Status: 502}, {Status: 503}}},
		"busy":   {faults: []remotetest.Fault{{Status: 429, Header: busy}}},
		"stall":  {faults: []remotetest.Fault{{Stall: 300_000}}},
		"all": {faults: []remotetest.Fault{{Drop: 5}, {Status: 504}, {Stall: 10}, {Status: 408},
			{Drop: 2 * megabyte}}},
		"denied": {faults: []remotetest.Fault{{Drop: 5}, {Status: 403}}, want: ErrDenied,
			says: "answers 403 Forbidden; no credentials were found: set AZURE_STORAGE_KEY"},
		"redirect": {faults: []remotetest.Fault{{Status: 302,
			Header: http.Header{"Location": {"http://127.0.0.1:9/"}}}},
			want: ErrUnreachable, says: "answers 302 Found; check AZURE_STORAGE_BLOB_ENDPOINT"},
		"down": {faults: slices.Repeat([]remotetest.Fault{{Status: 500}}, 4), want: ErrUnreachable,
			says: "answers 500 Internal Server Error, 4 times in a row"},
		"changes": {faults: []remotetest.Fault{{Drop: megabyte, Then: put(other)}}, want: &ChangedError{},
			says: "its ETag changed while it was read"},
	} {
		put(data)()
		o, err := s.Describe(context.Background(), "az://con/f")
		if err != nil || o.Size != int64(len(data)) || o.ETag == "" {
			t.Fatalf("%s: %+v, %v", name, o, err)
		}
		srv.Fail(c.faults...)
		got, err := readFile(t, s, o, 17)
		var changed *ChangedError
		if _, wants := c.want.(*ChangedError); wants && !errors.As(err, &changed) ||
			!wants && !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if c.want == nil && !bytes.Equal(got, data[17:]) || !bytes.HasPrefix(data[17:], got) {
			t.Errorf("%s: %d bytes differ", name, len(got))
		}
		if n := srv.Left(); n != 0 {
			t.Fatalf("%s: %d faults did not happen", name, n)
		}
	}
}

// A list comes in pages, with the ETags that the blobs have.
func TestAzureList(t *testing.T) {
	srv, s := newBlobs(t)
	want := map[string]bool{}
	for i := range 7 {
		name := fmt.Sprintf("%d.txt", i)
		want[name] = true
		srv.Put("/con/folder/"+name, remotetest.File{Data: content(i)})
		srv.Put("/con/folderless/"+name, remotetest.File{})
	}
	srv.Put("/con/folder/sub/", remotetest.File{})
	got := map[string]bool{}
	err := s.List(context.Background(), "az://con/folder/", func(name string, o Object) error {
		got[name] = true
		described, err := s.Describe(context.Background(), o.URI)
		if err != nil || described.compare(&o) != nil || o.ETag != described.ETag || o.URI != "az://con/folder/"+name {
			t.Errorf("%s: %+v, %+v, %v", name, o, described, err)
		}
		return nil
	})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	stop := errors.New("stop")
	if err := s.List(context.Background(), "az://con", func(string, Object) error { return stop }); !errors.Is(err,
		stop) {
		t.Error(err)
	}
	srv.Serve = func(w http.ResponseWriter, r *http.Request) bool {
		for range 3 * maxAnswer / 1024 {
			if _, err := w.Write(bytes.Repeat([]byte(" "), 1024)); err != nil {
				break
			}
		}
		return true
	}
	if err := s.List(context.Background(), "az://con", nil); err == nil ||
		!strings.Contains(err.Error(), "the response is too long") {
		t.Errorf("an endless list: %v", err)
	}
}

// Requests carry what the environment says, and no error does.
func TestAzureAccount(t *testing.T) {
	const key, sig = "c2VjcmV0a2V5", "sv=2024-01-01&sp=rl&sig=S3cret%2Bsig"
	srv := remotetest.New()
	var query, authorization string
	srv.Serve = func(w http.ResponseWriter, r *http.Request) bool {
		query, authorization = r.URL.RawQuery, r.Header.Get("Authorization")
		w.Header().Set("x-ms-error-code", "AuthenticationFailed")
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	at := "BlobEndpoint=" + srv.URL + "/acc;"
	for _, c := range []struct {
		env, says    string
		keyed, sured bool // how the request is authorized
		kind         error
	}{
		{"BLOB_ENDPOINT=" + srv.URL, "no credentials were found", false, false, ErrDenied},
		{"BLOB_ENDPOINT=" + srv.URL + " ACCOUNT=acc KEY=" + key, "its key", true, false, ErrDenied},
		{"SERVICE_ENDPOINT=" + srv.URL + "/acc ACCOUNT_NAME=acc ACCOUNT_KEY=" + key, "its key", true, false, ErrDenied},
		{"BLOB_ENDPOINT=" + srv.URL + " SAS_TOKEN=?" + sig, "shared access signature", false, true, ErrDenied},
		{"BLOB_ENDPOINT=" + srv.URL + " ACCOUNT=acc KEY=" + key + " SAS_TOKEN=" + sig, "its key", true,
			false, ErrDenied},
		{"CONNECTION_STRING=" + at + "AccountName=acc;AccountKey=" + key + "; ACCOUNT=other", "its key", true,
			false, ErrDenied},
		{"CONNECTION_STRING=" + at + "SharedAccessSignature=" + sig, "signature", false, true, ErrDenied},
		{"CONNECTION_STRING=AccountName=acc;AccountKey=" + key + " BLOB_ENDPOINT=" + srv.URL, "its key", true,
			false, ErrDenied},
		{"", "no storage account is named; set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY",
			false, false, ErrUsage},
		{"KEY=" + key, "no storage account is named", false, false, ErrUsage},
		{"BLOB_ENDPOINT=" + srv.URL + " KEY=" + key, "set AZURE_STORAGE_ACCOUNT", false, false, ErrUsage},
		{"BLOB_ENDPOINT=" + srv.URL + " ACCOUNT=acc KEY=S3cret!", "not in base64; check AZURE_STORAGE_KEY", false,
			false, ErrUsage},
		{"CONNECTION_STRING=" + at + "AccountName=acc;AccountKey=S3cret!", "check AccountKey", false, false, ErrUsage},
		{"CONNECTION_STRING=S3cret", "cannot be parsed", false, false, ErrUsage},
		{"CONNECTION_STRING=AccountKey=" + key, "names no storage account", false, false, ErrUsage},
		{"BLOB_ENDPOINT=" + srv.URL + "?" + sig, "BLOB_ENDPOINT", false, false, ErrUsage},
		{"BLOB_ENDPOINT=S3cret", "BLOB_ENDPOINT", false, false, ErrUsage},
		{"ACCOUNT=acc@S3cret", "not the address", false, false, ErrUsage},
		{"BLOB_ENDPOINT=http://127.0.0.1:9 SAS_TOKEN=" + sig, "refused", false, false, ErrUnreachable},
	} {
		var env []string
		for _, e := range strings.Fields(c.env) {
			env = append(env, "AZURE_STORAGE_"+e)
		}
		setEnv(t, env...)
		s := newStore(t, nil)
		query, authorization = "", ""
		_, err := s.Describe(context.Background(), "az://con/x")
		listed := s.List(context.Background(), "az://con/x", nil)
		for _, err := range []error{err, listed} {
			if err == nil || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.env, err)
			} else if text := err.Error(); strings.Contains(text, "S3cret") || strings.Contains(text, key) {
				t.Errorf("%s: the error shows a secret: %v", c.env, err)
			}
		}
		if c.keyed != strings.HasPrefix(authorization, "SharedKey acc:") ||
			c.sured != strings.Contains(query, "sig=S3cret%2Bsig") {
			t.Errorf("%s: sent %q, %q", c.env, query, authorization)
		}
	}
	srv.Close()
}

// The account of an address without an endpoint is Microsoft's.
func TestAzureEndpoint(t *testing.T) {
	for env, want := range map[string]string{
		"ACCOUNT=acc": "https://acc.blob.core.windows.net",
		"CONNECTION_STRING=DefaultEndpointsProtocol=http;AccountName=acc;AccountKey=eA==;EndpointSuffix=core.chinacloudapi.cn": "http://acc.blob.core.chinacloudapi.cn",
	} {
		setEnv(t, "AZURE_STORAGE_"+env)
		if a, err := azureFromEnv(); err != nil || a.base.String() != want {
			t.Errorf("%s: %v, %v", env, a.base, err)
		}
	}
}

// On a real server: names of all kinds, folders that are blobs, and what is missing.
func TestAzurite(t *testing.T) {
	c := remotetest.Azure(t)
	setEnv(t, c.Env...)
	s := newStore(t, nil)
	yes := "true"
	files := map[string][]byte{"t/a.txt": content(100_000), "t/sub/c d é%20#?&+.txt": content(10), "t/empty": nil}
	for name, data := range files {
		c.Put(t, name, data, nil)
	}
	c.Put(t, "t/sub", nil, map[string]*string{"hdi_isfolder": &yes})
	n := 0
	if err := s.List(context.Background(), "az://bucket/t", func(name string, o Object) error {
		if name == "sub" {
			return nil
		}
		n++
		got, err := readFile(t, s, o, 0)
		if err != nil || !bytes.Equal(got, files["t/"+name]) || o.ETag == "" || o.Modified.IsZero() {
			t.Errorf("%s: %d bytes, %+v, %v", name, len(got), o, err)
		}
		if described, err := s.Describe(context.Background(), o.URI); err != nil || described != o {
			t.Errorf("%s: %+v, want %+v; %v", name, described, o, err)
		}
		return nil
	}); err != nil || n != len(files) {
		t.Errorf("%d files, %v", n, err)
	}
	o, err := s.Describe(context.Background(), "az://bucket/t/a.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readFile(t, s, o, 99_000); err != nil || !bytes.Equal(got, files["t/a.txt"][99_000:]) {
		t.Errorf("from an offset: %d bytes, %v", len(got), err)
	}
	c.Put(t, "t/a.txt", content(100_001)[1:], nil)
	var changed *ChangedError
	if _, err := readFile(t, s, o, 0); !errors.As(err, &changed) {
		t.Errorf("a blob that changed: %v", err)
	}
	for _, uri := range []string{"az://bucket/none", "az://bucket/t/sub", "az://bucket/"} {
		if _, err := s.Describe(context.Background(), uri); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if _, err := s.Describe(context.Background(), "az://nothere/x"); !errors.Is(err, ErrNoBucket) ||
		!strings.Contains(err.Error(), "no such container; check the container's name") {
		t.Errorf("an object of no container: %v", err)
	}
	if err := s.List(context.Background(), "az://nothere", nil); !errors.Is(err, ErrNoBucket) {
		t.Errorf("a list of no container: %v", err)
	}
	if _, err := s.Describe(context.Background(), "az://bucket/x?sv=1&sig=S3cret"); !errors.Is(err, ErrUsage) ||
		!strings.Contains(err.Error(), "set AZURE_STORAGE_SAS_TOKEN") || strings.Contains(err.Error(), "S3cret") {
		t.Errorf("a signed address: %v", err)
	}
	for _, name := range []string{"az://Bad_Name/x", "az:///x", "az://user:S3cret@bucket/x"} {
		if _, err := s.Describe(context.Background(), name); !errors.Is(err, ErrUsage) ||
			strings.Contains(err.Error(), "S3cret") ||
			!strings.Contains(err.Error(), "write az://CONTAINER/PATH") {
			t.Errorf("%s: %v", name, err)
		}
	}
	setEnv(t, append(slices.Clone(c.Env), "AZURE_STORAGE_KEY=d3Jvbmc=")...)
	if _, err := newStore(t, nil).Describe(context.Background(), o.URI); !errors.Is(err, ErrDenied) ||
		!strings.Contains(err.Error(), "check the account's name, its key") {
		t.Errorf("a wrong key: %v", err)
	}
}
