package remotetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// A Bucket is an empty bucket on a real server that the test started.
type Bucket struct {
	URI    string   // s3://…, gs://… or az://…, without a slash at its end
	Env    []string // for the program under test
	Secret string   // must not be shown; "" for none
	Open   bool     // any secret will do
}

// Programs are the servers that bucket tests start, and how to install them.
var Programs = map[string]string{
	"versitygw":       "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
	"fake-gcs-server": "github.com/fsouza/fake-gcs-server@v1.56.1",
}

// Buckets starts a server of each kind. Quick tests, and those of machines without these programs,
// have MemoryBuckets instead.
func Buckets(t *testing.T) map[string]Bucket {
	t.Helper()
	for name, install := range Programs {
		if program(name) == "" && !testing.Short() {
			t.Logf("a server in memory stands for %s, which is not installed: go install %s", name, install)
		}
		if program(name) == "" || testing.Short() {
			s, buckets := MemoryBuckets()
			t.Cleanup(s.Close)
			return buckets
		}
	}
	buckets := map[string]Bucket{"s3": startS3(t), "gs": startGS(t)}
	if path := azurite(); path != "" {
		buckets["az"] = startAzure(t, path).Bucket
	} else {
		s, memory := MemoryBuckets()
		t.Cleanup(s.Close)
		buckets["az"] = memory["az"]
	}
	return buckets
}

// program finds a server in PATH or where go install puts it, "" if it is not installed.
func program(name string) string {
	home, _ := os.UserHomeDir() // without one there is no such folder
	for _, dir := range []string{os.Getenv("GOBIN"), filepath.Join(os.Getenv("GOPATH"), "bin"),
		filepath.Join(home, "go", "bin")} {
		if path := filepath.Join(dir, name); filepath.IsAbs(path) && exec.Command(path, "-h").Run() == nil {
			return path
		}
	}
	path, _ := exec.LookPath(name)
	return path
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// start runs a server until the test ends, and waits until it listens.
func start(t *testing.T, port string, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	})
	for {
		c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
		if err == nil {
			c.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v", args[0], err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func startS3(t *testing.T) Bucket {
	t.Helper()
	const key, secret = "AKIATESTOFDSLOAD0001", "s3cretOfThe/Test+0123456789"
	port := freePort(t)
	start(t, port, program("versitygw"), "--port", "127.0.0.1:"+port, "--access", key, "--secret", secret,
		"--quiet", "posix", t.TempDir())
	client, err := minio.New("127.0.0.1:"+port, &minio.Options{Creds: credentials.NewStaticV4(key, secret, ""),
		Region: "us-east-1"})
	if err == nil {
		err = client.MakeBucket(context.Background(), "bucket", minio.MakeBucketOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return Bucket{URI: "s3://bucket", Secret: secret, Env: []string{"AWS_ENDPOINT_URL=http://127.0.0.1:" + port,
		"AWS_ACCESS_KEY_ID=" + key,
		"AWS_SECRET_ACCESS_KEY=" + secret, "AWS_REGION=us-east-1", "AWS_SESSION_TOKEN=", "AWS_PROFILE="}}
}

func startGS(t *testing.T) Bucket {
	t.Helper()
	port := freePort(t)
	front := httptest.NewServer(uploadsWhole(&url.URL{Scheme: "http", Host: "127.0.0.1:" + port}))
	t.Cleanup(front.Close)
	start(t, port, program("fake-gcs-server"), "-scheme", "http", "-host", "127.0.0.1", "-port", port, "-backend",
		"memory", "-public-host", front.Listener.Addr().String(), "-log-level", "error")
	resp, err := http.Post(front.URL+"/storage/v1/b?project=p", "application/json",
		strings.NewReader(`{"name": "bucket"}`))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(fmt.Sprint(resp, err))
	}
	resp.Body.Close()
	return Bucket{URI: "gs://bucket", Env: []string{"STORAGE_EMULATOR_HOST=" + front.URL}}
}

// uploadsWhole forwards requests to fake-gcs-server, each only when its body has arrived whole. That
// server reads an upload under its one lock, so that a program that stops within one, as tests of
// stragglers do, would stop every other.
func uploadsWhole(target *url.URL) http.Handler {
	forward := httputil.NewSingleHostReverseProxy(target)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the program ended within its upload
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	})
}
