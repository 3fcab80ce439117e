package remotetest

import (
	"encoding/xml"
	"net/http"
)

// SendS3List answers as S3 does with a page of a bucket's list: keys of size bytes each, and the
// token of the next page, "" after the last one.
func SendS3List(w http.ResponseWriter, next string, keys []string, size func(key string) int) {
	var found []s3Contents
	for _, k := range keys {
		found = append(found, s3Contents{k, "2020-01-01T00:00:00.000Z", `"e"`, size(k)})
	}
	sendS3Page(w, next, found)
}

// s3Contents is an object in a list.
type s3Contents struct {
	Key, LastModified, ETag string
	Size                    int
}

func sendS3Page(w http.ResponseWriter, next string, found []s3Contents) {
	page := struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []s3Contents
	}{IsTruncated: next != "", NextContinuationToken: next, Contents: found}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(page) // a client that has gone needs no answer
}

// S3Env is the environment of a client of a server that speaks S3.
func S3Env(url string) map[string]string {
	return map[string]string{"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_REGION": "us-east-1", "AWS_PROFILE": "", "AWS_SESSION_TOKEN": ""}
}
