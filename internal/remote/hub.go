package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// The Hub's part of HTTP:
//
//	GET  /api/datasets/OWNER/NAME/revision/REV   {"sha": COMMIT}
//	POST /api/datasets/OWNER/NAME/paths-info/COMMIT   {"paths": [PATH]} -> [entry]
//	GET  /api/datasets/OWNER/NAME/tree/COMMIT/FOLDER?recursive=true   [entry, …], more by the header Link
//	GET  /datasets/OWNER/NAME/resolve/COMMIT/PATH   redirects: X-Repo-Commit, X-Linked-Size, X-Linked-Etag
//
// An entry of a large file has the SHA-256 of its content, any other its git object id. Large files
// are stored elsewhere, at signed addresses that expire. If one answers 403, a new one is
// requested, once.

// hub is the backend of hf:// addresses.
type hub struct {
	store    *Store
	settings hubSettings
	endpoint *url.URL

	mu      sync.Mutex
	commits map[string]string // keys are repository and revision
	signed  map[string]*url.URL
}

func newHub(s *Store) (backend, error) {
	settings := hubFromEnvironment()
	u, err := url.Parse(settings.endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, &Error{Kind: ErrUsage, Text: "HF_ENDPOINT is not an http address",
			Hint: "set it to one such as https://huggingface.co"}
	}
	return &hub{store: s, settings: settings, endpoint: u, commits: map[string]string{},
		signed: map[string]*url.URL{}}, nil
}

func (h *hub) host(*Object) string { return h.endpoint.Host }

// request returns a GET of a path on the Hub, each of whose parts is escaped.
func (h *hub) request(ctx context.Context, parts ...string) *http.Request {
	u := *h.endpoint
	names := strings.Split(strings.Join(parts, "/"), "/")
	for i := range names {
		names[i] = url.PathEscape(names[i])
	}
	u.RawPath = strings.TrimSuffix(h.endpoint.EscapedPath(), "/") + "/" + strings.Join(names, "/")
	u.Path, _ = url.PathUnescape(u.RawPath)
	return h.authorized(ctx, &u)
}

// authorized returns a GET with the token, if u is on the Hub.
func (h *hub) authorized(ctx context.Context, u *url.URL) *http.Request {
	req := newRequest(ctx, u)
	if h.settings.token != "" && u.Host == h.endpoint.Host && u.Scheme == h.endpoint.Scheme {
		req.Header.Set("Authorization", "Bearer "+h.settings.token)
	}
	return req
}

// commit returns the commit that a revision named when it was first requested.
func (h *hub) commit(ctx context.Context, p *hubPath) (string, error) {
	key := p.repository()
	h.mu.Lock()
	commit := h.commits[key]
	h.mu.Unlock()
	if commit == "" && h.store.opts.Revision != nil {
		commit = h.store.opts.Revision(key)
	}
	if commit == "" && isCommit(p.revision) {
		commit = p.revision
	}
	if commit == "" && h.settings.offline {
		var err error
		if commit, err = h.settings.cachedCommit(p); err != nil {
			return "", err
		}
	}
	if commit == "" {
		revision := p.branch()
		resp, err := h.ask(ctx, p, func() (*http.Request, error) {
			req := h.request(ctx, "api", p.kind, p.repo, "revision")
			u := req.URL
			u.RawPath = u.EscapedPath() + "/" + url.PathEscape(revision)
			u.Path += "/" + revision
			return req, nil
		})
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		var info struct {
			SHA string `json:"sha"`
		}
		if err := decodeJSON(resp, &info); err != nil {
			return "", err
		}
		if commit = info.SHA; !isCommit(commit) {
			return "", &Error{Kind: ErrUnreachable, Text: fmt.Sprintf("%s gives no commit for %s", h.endpoint.Host, key)}
		}
	}
	h.mu.Lock()
	h.commits[key] = commit
	h.mu.Unlock()
	return commit, nil
}

// ask sends a request to the Hub and explains its refusals.
func (h *hub) ask(ctx context.Context, p *hubPath, request func() (*http.Request, error)) (*http.Response, error) {
	if h.settings.offline {
		return nil, h.offline()
	}
	resp, err := h.store.ask(ctx, h.endpoint.Host, request, func(resp *http.Response) error {
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		return h.refusal(resp, p)
	})
	if own, ok := errors.AsType[*Error](err); ok && errors.Is(own.Kind, ErrUnreachable) && own.Status == 0 && own.retry {
		alone := *own
		alone.Hint = "check the network, or HF_ENDPOINT and HTTPS_PROXY if you set them; " +
			"with HF_HUB_OFFLINE=1 what huggingface_hub has downloaded is read"
		err = &alone
	}
	return resp, err
}

func (h *hub) offline() error {
	return &Error{Kind: ErrUnreachable, Text: "it is not in the cache " + h.settings.cache +
		", and HF_HUB_OFFLINE is set",
		Hint: "unset HF_HUB_OFFLINE, or download it first"}
}

// refusal explains an unwanted answer of the Hub.
func (h *hub) refusal(resp *http.Response, p *hubPath) error {
	e := statusError(resp, h.endpoint.Host)
	if words := oneLine(resp.Header.Get("X-Error-Message")); words != "" {
		e.Text += ": " + words
	}
	withToken := h.settings.token != ""
	login := "set HF_TOKEN to a token that may read it"
	if withToken {
		login = "the token that is set may not read it: check HF_TOKEN"
	}
	switch resp.Header.Get("X-Error-Code") {
	case "GatedRepo":
		e.Kind, e.Hint = ErrDenied, fmt.Sprintf("the repository is gated: accept its conditions on %s/%s%s, and %s",
			strings.TrimSuffix(h.settings.endpoint, "/"), map[string]string{"datasets": "datasets/"}[p.kind], p.repo,
			login)
	case "RepoNotFound":
		e.Kind, e.Hint = ErrNoBucket, "check the name; a private repository needs a token in HF_TOKEN"
	case "RevisionNotFound":
		e.Kind, e.Hint = ErrNoBucket, "check the revision after the @; a slash in it is written %2F"
	case "EntryNotFound":
		e.Kind, e.Hint = ErrNoBucket, "check the path"
	default:
		switch e.Kind {
		case ErrDenied:
			e.Hint = login
		case fs.ErrNotExist:
			e.Kind = ErrNoBucket
		}
	}
	return e
}

// maxAnswer limits an answer of the Hub's API, except for trees, which come in pages.
const maxAnswer = 8 << 20

func decodeJSON(resp *http.Response, v any) error {
	data, err := readLimited(resp.Body, maxAnswer)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return &Error{Kind: ErrUnreachable, Text: fmt.Sprintf("%s sent invalid JSON: %v", resp.Request.URL.Host,
			err)}
	}
	return nil
}

// HubOffline reports whether an address is one of the Hub, and only its cache is read.
func HubOffline(address string) bool {
	scheme, _ := Scheme(address)
	return scheme == "hf" && hubFromEnvironment().offline
}
