package remotetest

import (
	"crypto/md5"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
)

// NewBlobs starts a server that answers as the blob service of Azure does, to anyone, with the
// files that Put gave paths /CONTAINER/NAME. Faults happen to requests for blobs, not to lists.
func NewBlobs() *Server {
	s := &Server{files: map[string]File{}}
	s.Serve = s.serveBlob
	s.Server = httptest.NewServer(s)
	return s
}

func refuseBlob(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("x-ms-error-code", code)
	w.WriteHeader(status)
	return true
}

// serveBlob answers what only the blob service knows, and leaves sending to the server.
func (s *Server) serveBlob(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Query().Get("comp") == "list" {
		return s.listBlobs(w, r)
	}
	switch r.Method {
	case http.MethodPut:
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return refuseBlob(w, http.StatusBadRequest, "InvalidInput")
		}
		return s.write(w, r, r.URL.Path, data, func(f File) {
			w.Header().Set("ETag", f.tag())
			w.WriteHeader(http.StatusCreated)
		})
	case http.MethodDelete:
		if _, ok := s.object(r.URL.Path); !ok {
			return refuseBlob(w, http.StatusNotFound, "BlobNotFound")
		}
		return s.write(w, r, r.URL.Path, nil, func(File) { w.WriteHeader(http.StatusAccepted) })
	}
	s.mu.Lock()
	f, ok := s.files[r.URL.Path]
	fails := len(s.faults) > 0 && s.faults[0].Status != 0
	s.mu.Unlock()
	if !ok {
		return refuseBlob(w, http.StatusNotFound, "BlobNotFound")
	}
	if tag := r.Header.Get("If-Match"); tag != "" && !fails && tag != f.tag() {
		return refuseBlob(w, http.StatusPreconditionFailed, "ConditionNotMet")
	}
	return false
}

// tag is the ETag that is sent with a file.
func (f *File) tag() string {
	if f.ETag != "" {
		return f.ETag
	}
	return fmt.Sprintf(`"%x"`, md5.Sum(f.Data))
}

// listBlobs answers with two blobs a page.
func (s *Server) listBlobs(w http.ResponseWriter, r *http.Request) bool {
	type properties struct {
		Size     int    `xml:"Content-Length"`
		ETag     string `xml:"Etag"`
		Modified string `xml:"Last-Modified,omitempty"`
	}
	type item struct {
		Name       string
		Properties properties
	}
	var page struct {
		XMLName xml.Name `xml:"EnumerationResults"`
		Blobs   []item   `xml:"Blobs>Blob"`
		Next    string   `xml:"NextMarker"`
	}
	root, query := r.URL.Path+"/", r.URL.Query()
	s.mu.Lock()
	var names []string
	for path := range s.files {
		if name, ok := strings.CutPrefix(path, root); ok && strings.HasPrefix(name, query.Get("prefix")) &&
			name >= query.Get("marker") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		if i == 2 {
			page.Next = name
			break
		}
		f := s.files[root+name]
		described := properties{Size: len(f.Data), ETag: strings.Trim(f.tag(), `"`)}
		if !f.Modified.IsZero() {
			described.Modified = f.Modified.UTC().Format(http.TimeFormat)
		}
		page.Blobs = append(page.Blobs, item{name, described})
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/xml")
	if err := xml.NewEncoder(w).Encode(page); err != nil {
		panic(err)
	}
	return true
}
