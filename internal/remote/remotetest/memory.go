package remotetest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// MemoryBuckets starts a server with an empty bucket for each kind: what the program uses of S3, of the JSON API
// of Google Cloud Storage and of Azure's blob service, in memory, for anyone.
func MemoryBuckets() (*Server, map[string]Bucket) {
	s := &Server{files: map[string]File{}}
	s.Serve = func(w http.ResponseWriter, r *http.Request) bool {
		if path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/upload"); ok ||
			strings.HasPrefix(path, "/storage/v1/b/") {
			return s.serveGS(w, r, path)
		}
		if strings.HasPrefix(r.URL.Path, "/az/") {
			return s.serveBlob(w, r)
		}
		return s.serveS3(w, r)
	}
	s.Server = httptest.NewServer(s)
	const secret = "s3cretOfThe/Test+0123456789"
	aws := []string{"AWS_SECRET_ACCESS_KEY=" + secret}
	for name, value := range S3Env(s.URL) {
		if name != "AWS_SECRET_ACCESS_KEY" {
			aws = append(aws, name+"="+value)
		}
	}
	return s, map[string]Bucket{"s3": {URI: "s3://bucket", Env: slices.Clip(aws), Secret: secret, Open: true},
		"gs": {URI: "gs://bucket", Env: []string{"STORAGE_EMULATOR_HOST=" + s.URL}, Open: true},
		"az": {URI: "az://bucket", Env: append(NoAzure(), "AZURE_STORAGE_BLOB_ENDPOINT="+s.URL+"/az"), Open: true}}
}

// EachMemoryBucket runs a test with each of MemoryBuckets, whose environment is set.
func EachMemoryBucket(t *testing.T, test func(t *testing.T, srv *Server, uri string)) {
	for _, kind := range []string{"s3", "gs", "az"} {
		t.Run(kind, func(t *testing.T) {
			srv, buckets := MemoryBuckets()
			defer srv.Close()
			for _, e := range buckets[kind].Env {
				name, value, _ := strings.Cut(e, "=")
				t.Setenv(name, value)
			}
			test(t, srv, buckets[kind].URI)
		})
	}
}

// Conditions is what a store does with a write that has a condition.
type Conditions int

const (
	ConditionsKept    Conditions = iota
	ConditionsIgnored            // it writes in any case
	ConditionsRefused            // it answers 501
)

// A WriteFault is what becomes of a write or a removal. The zero WriteFault is none.
type WriteFault struct {
	Status int  // answered in its place
	Drop   bool // the connection breaks before it
	Lose   bool // it happens, and the connection breaks before the answer
}

// write stores an object, or removes it where data is nil, and answers with done, unless a fault or a condition
// comes first. Each object has a time of its own, from which its generation comes.
func (s *Server) write(w http.ResponseWriter, r *http.Request, path string, data []byte, done func(File)) bool {
	var fault WriteFault
	if s.OnWrite != nil {
		fault = s.OnWrite(r.Method, path)
	}
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	generation := r.URL.Query().Get("ifGenerationMatch")
	conditional := match != "" || none != "" || generation != ""
	s.mu.Lock()
	old, there := s.files[path]
	met := (match == "" || there && strings.Trim(match, `"`) == strings.Trim(old.tag(), `"`)) && (none == "" || !there) &&
		(generation == "" || generation == "0" && !there || there && generation == old.generation())
	refused := conditional && s.Conditions == ConditionsRefused
	kept := met || s.Conditions == ConditionsIgnored
	f := File{Data: data}
	if !fault.Drop && fault.Status == 0 && !refused && kept {
		s.writes++
		f.Modified, f.ETag = time.Unix(1e9+s.writes, 0), f.tag()
		if s.files[path] = f; data == nil {
			delete(s.files, path)
		}
	}
	s.mu.Unlock()
	switch {
	case fault.Drop:
		panic(http.ErrAbortHandler)
	case fault.Status != 0:
		return refuseS3(w, fault.Status, "AccessDenied")
	case refused:
		return refuseS3(w, http.StatusNotImplemented, "NotImplemented")
	case fault.Lose:
		panic(http.ErrAbortHandler)
	case !kept:
		return refuseS3(w, http.StatusPreconditionFailed, "PreconditionFailed")
	}
	done(f)
	return true
}

// object returns the object of a path.
func (s *Server) object(path string) (File, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files[path]
	return f, ok
}

// pageLength is how many objects a page of a list has.
const pageLength = 20

// page returns the names of the objects below a folder that follow another, and the last of them if
// there are more.
func (s *Server) page(folder, prefix, after string) (names []string, next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path := range s.files {
		if name, ok := strings.CutPrefix(path, folder); ok && strings.HasPrefix(name, prefix) && name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) > pageLength {
		names = names[:pageLength]
		next = names[pageLength-1]
	}
	return names, next
}

func refuseS3(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
	return true
}

// serveS3 answers requests for /bucket/KEY.
func (s *Server) serveS3(w http.ResponseWriter, r *http.Request) bool {
	key, query := strings.TrimPrefix(r.URL.Path, "/bucket/"), r.URL.Query()
	if !strings.HasPrefix(r.URL.Path+"/", "/bucket/") {
		return refuseS3(w, http.StatusNotFound, "NoSuchBucket")
	}
	if r.Method == http.MethodGet && query.Has("list-type") {
		return s.listS3(w, query)
	}
	switch r.Method {
	case http.MethodPut:
		data, err := decodeChunks(r)
		if err != nil {
			return refuseS3(w, http.StatusBadRequest, "IncompleteBody")
		}
		return s.write(w, r, "/bucket/"+key, data, func(f File) { w.Header().Set("ETag", f.tag()) })
	case http.MethodDelete:
		return s.write(w, r, "/bucket/"+key, nil, func(File) { w.WriteHeader(http.StatusNoContent) })
	default:
		f, ok := s.object("/bucket/" + key)
		if !ok {
			return refuseS3(w, http.StatusNotFound, "NoSuchKey")
		}
		if tag := r.Header.Get("If-Match"); tag != "" && strings.Trim(tag, `"`) != strings.Trim(f.tag(), `"`) {
			return refuseS3(w, http.StatusPreconditionFailed, "PreconditionFailed")
		}
		s.Send(w, r, f, nil)
	}
	return true
}

func (s *Server) listS3(w http.ResponseWriter, query url.Values) bool {
	names, next := s.page("/bucket/", query.Get("prefix"),
		max(query.Get("start-after"), query.Get("continuation-token")))
	var found []s3Contents
	for _, name := range names {
		if f, ok := s.object("/bucket/" + name); ok {
			found = append(found, s3Contents{name, f.Modified.UTC().Format("2006-01-02T15:04:05.000Z"), f.tag(), len(f.Data)})
		}
	}
	sendS3Page(w, next, found)
	return true
}

// decodeChunks reads a body whose parts are signed one by one, if it is such a one.
func decodeChunks(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	data := []byte{}
	for in := bufio.NewReader(r.Body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		part := make([]byte, n+2) // with its line break
		if _, err := io.ReadFull(in, part); err != nil {
			return nil, err
		}
		data = append(data, part[:n]...)
	}
	if want := r.Header.Get("X-Amz-Decoded-Content-Length"); want != strconv.Itoa(len(data)) {
		return nil, errors.New("the body has another length")
	}
	return data, nil
}

// serveGS answers requests for /storage/v1/b/BUCKET/o/NAME, whose name is escaped.
func (s *Server) serveGS(w http.ResponseWriter, r *http.Request, path string) bool {
	bucket, name, _ := strings.Cut(strings.TrimPrefix(path, "/storage/v1/b/"), "/o")
	name, err := url.PathUnescape(strings.TrimPrefix(name, "/"))
	query := r.URL.Query()
	if r.Method == http.MethodPost {
		name = query.Get("name")
	}
	f, ok := s.object("/gs/" + name)
	switch {
	case err != nil || bucket != "bucket" || name != "" && !ok && r.Method != http.MethodPost:
		http.Error(w, "no such object", http.StatusNotFound)
	case r.Method == http.MethodPost:
		data, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return true
		}
		return s.write(w, r, "/gs/"+name, data, func(f File) { sendJSON(w, describeGS(name, f)) })
	case r.Method == http.MethodDelete:
		return s.write(w, r, "/gs/"+name, nil, func(File) { w.WriteHeader(http.StatusNoContent) })
	case name == "":
		names, next := s.page("/gs/", query.Get("prefix"), query.Get("pageToken"))
		items := []any{}
		for _, name := range names {
			if f, ok := s.object("/gs/" + name); ok {
				items = append(items, describeGS(name, f))
			}
		}
		return sendJSON(w, map[string]any{"items": items, "nextPageToken": next})
	case query.Get("alt") == "media":
		if want := query.Get("ifGenerationMatch"); want != "" && want != f.generation() {
			http.Error(w, "another generation", http.StatusPreconditionFailed)
			return true
		}
		w.Header().Set("X-Goog-Generation", f.generation())
		s.Send(w, r, f, nil)
	default:
		return sendJSON(w, describeGS(name, f))
	}
	return true
}

func (f *File) generation() string { return strconv.FormatInt(f.Modified.Unix(), 10) }

func describeGS(name string, f File) any {
	return map[string]string{"name": name, "size": strconv.Itoa(len(f.Data)), "generation": f.generation(),
		"updated": f.Modified.UTC().Format(time.RFC3339)}
}

func sendJSON(w http.ResponseWriter, answer any) bool {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone needs no answer
	return true
}
