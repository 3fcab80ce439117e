package remote

import (
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/dsload/dsload/internal/lazy"
)

// parseBucket splits scheme://BUCKET/KEY. The key may hold any bytes: to a store, "a//b" and
// "a/../b" are names like any other.
func parseBucket(uri string) (bucket, key string, err error) {
	_, rest, _ := strings.Cut(uri, "://")
	bucket, key, _ = strings.Cut(rest, "/")
	scheme, _ := Scheme(uri)
	word := "bucket"
	if scheme == "az" {
		word = "container"
	}
	hint := "write " + scheme + "://" + strings.ToUpper(word) + "/PATH; credentials come from the environment"
	if bucket == "" || strings.ContainsAny(bucket, "@:?#*[ ") {
		return "", "", &Error{Kind: ErrUsage, Text: "there is no " + word + " in the address", Hint: hint}
	}
	if why := badBucket(scheme, bucket); why != "" {
		return "", "", &Error{Kind: ErrUsage, Text: fmt.Sprintf("%q cannot be the name of a %s: %s", bucket, word, why),
			Hint: hint}
	}
	return bucket, key, nil
}

// parseObject is parseBucket for the address of an object, which a bucket is not.
func parseObject(uri string) (bucket, key string, err error) {
	bucket, key, err = parseBucket(uri)
	if err == nil && key == "" {
		err = fs.ErrNotExist
	}
	return bucket, key, err
}

// quotedTag returns an ETag as HTTP has it, whether or not it was given with quotes; "" for none.
func quotedTag(tag string) string {
	if tag = strings.Trim(tag, `"`); tag == "" {
		return ""
	}
	return `"` + tag + `"`
}

var (
	gsBucket    = lazy.Regexp(`^[a-z0-9][a-z0-9._-]+[a-z0-9]$`)
	azContainer = lazy.Regexp(`^(?:\$root|\$web|\$logs|[a-z0-9](?:-?[a-z0-9])+)$`)
)

// badBucket returns why no bucket can have a name, or "". Without it a store would be asked, again
// and again, and its answer would be taken for a fault of the network.
func badBucket(scheme, name string) string {
	longest := 63
	if scheme == "gs" && strings.Contains(name, ".") {
		longest = 222
	}
	if len(name) < 3 || len(name) > longest {
		return fmt.Sprintf("it must have 3 to %d characters", longest)
	}
	switch scheme {
	case "s3":
		if err := s3utils.CheckValidBucketName(name); err != nil {
			return strings.ToLower(oneLine(err.Error()))
		}
	case "gs":
		if !gsBucket().MatchString(name) {
			return "it must be of lower-case letters, digits, dashes, underscores and dots"
		}
	case "az":
		if !azContainer().MatchString(name) {
			return "it must be of lower-case letters, digits and single dashes"
		}
	}
	return ""
}

// folderPrefix returns what the keys of all objects below a folder begin with. One slash at the end
// of the folder's key may be left out; any other belongs to it.
func folderPrefix(key string) string {
	if key == "" {
		return ""
	}
	return strings.TrimSuffix(key, "/") + "/"
}

// pages notices a list whose pages come round again, which would never end. It keeps one token,
// and replaces it after 1, 2, 4, … pages, so a circle of n pages is found within 3n pages of its
// beginning (R. P. Brent's algorithm).
type pages struct {
	kept       string
	seen, turn int
}

// next is given the token of each further page. It returns an error if the list does not end.
func (p *pages) next(token, host string) error {
	if p.turn > 0 && token == p.kept {
		return &Error{Kind: ErrUnreachable,
			Text: host + " never ends its list: after a page of it comes an earlier one",
			Hint: "the server is at fault; name each file"}
	}
	if p.seen++; p.seen > p.turn {
		p.kept, p.seen, p.turn = token, 0, max(1, 2*p.turn)
	}
	return nil
}

// listTransport sends the requests of S3's library, which follows a list to its end by itself.
// Requests for pages bring their list's pages in their context.
type listTransport struct{ http.RoundTripper }

type pagesKey struct{}

func (t listTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	list, ok := req.Context().Value(pagesKey{}).(*pages)
	if token := req.URL.Query().Get("continuation-token"); ok && token != "" {
		if err := list.next(token, req.URL.Host); err != nil {
			return nil, err
		}
	}
	resp, err := t.RoundTripper.RoundTrip(req)
	if err == nil && ok {
		resp.Body = &shortBody{ReadCloser: resp.Body, left: maxAnswer}
	}
	return resp, err
}
