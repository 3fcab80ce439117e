package remotetest

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestHalfAnUpload leaves an upload in its middle. It must not keep others from their objects.
func TestHalfAnUpload(t *testing.T) {
	b := Buckets(t)["gs"]
	base := strings.TrimPrefix(b.Env[0], "STORAGE_EMULATOR_HOST=")
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "POST /upload/storage/v1/b/bucket/o?uploadType=media&name=half HTTP/1.1\r\n"+
		"Host: half\r\nContent-Length: 1000000\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		resp, err := http.Post(base+"/upload/storage/v1/b/bucket/o?uploadType=media&name=whole", "text/plain",
			strings.NewReader("whole"))
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
	}
}
