package remotetest

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// A Container is an empty container of a storage account, on a server that the test started.
type Container struct {
	Bucket
	Endpoint, Account, Key string

	client *container.Client
}

// Azure starts Microsoft's emulator, and skips the test where it is not installed.
func Azure(t *testing.T) *Container {
	t.Helper()
	path := azurite()
	if path == "" {
		t.Skip("azurite-blob is not installed: npm install --prefix .venv-node/azurite azurite@3.37.0")
	}
	return startAzure(t, path)
}

func startAzure(t *testing.T, path string) *Container {
	t.Helper()
	const account = "storeoftests"
	const secret = "a key that no message may ever show, of 64 bytes as real ones are"
	key := base64.StdEncoding.EncodeToString([]byte(secret))
	port, dir := freePort(t), t.TempDir()
	t.Setenv("AZURITE_ACCOUNTS", account+":"+key)
	start(t, port, path, "--blobHost", "127.0.0.1", "--blobPort", port, "--location", dir, "--silent",
		"--skipApiVersionCheck", "--disableTelemetry")
	c := &Container{Endpoint: "http://127.0.0.1:" + port + "/" + account, Account: account, Key: key}
	cred, err := blob.NewSharedKeyCredential(account, key)
	if err == nil {
		c.client, err = container.NewClientWithSharedKeyCredential(c.Endpoint+"/bucket", cred, nil)
	}
	if err == nil {
		_, err = c.client.Create(context.Background(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Bucket = Bucket{URI: "az://bucket", Secret: key, Env: append(NoAzure(), "AZURE_STORAGE_BLOB_ENDPOINT="+c.Endpoint,
		"AZURE_STORAGE_ACCOUNT="+account, "AZURE_STORAGE_KEY="+key)}
	return c
}

// NoAzure unsets what the program reads of Azure.
func NoAzure() []string {
	var env []string
	for _, name := range []string{"ACCOUNT", "ACCOUNT_NAME", "KEY", "ACCOUNT_KEY", "SAS_TOKEN", "CONNECTION_STRING",
		"BLOB_ENDPOINT", "SERVICE_ENDPOINT"} {
		env = append(env, "AZURE_STORAGE_"+name+"=")
	}
	return env
}

// Put writes a blob, with metadata if any is given.
func (c *Container) Put(t *testing.T, name string, data []byte, metadata map[string]*string) {
	t.Helper()
	b := c.client.NewBlockBlobClient(name)
	if _, err := b.UploadBuffer(context.Background(), data,
		&blockblob.UploadBufferOptions{Metadata: metadata}); err != nil {
		t.Fatal(err)
	}
}

// azurite finds the emulator among the packages of Node or in PATH, "" if it is not installed.
func azurite() string {
	packages := os.Getenv("DSLOAD_NODE_PACKAGES")
	for dir, _ := os.Getwd(); packages == "" && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			packages = filepath.Join(dir, ".venv-node")
		}
	}
	path := filepath.Join(packages, "azurite", "node_modules", ".bin", "azurite-blob")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	path, _ = exec.LookPath("azurite-blob")
	return path
}
