package remote

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
)

const (
	// maxAzurePut is the size to which a blob is sent in one request. A larger one is sent in blocks.
	maxAzurePut   = 4 << 30
	azurePutBlock = 256 << 20
)

// access returns the condition as the library takes it, nil for none.
func (when Condition) access() *blob.AccessConditions {
	conditions := &blob.ModifiedAccessConditions{}
	switch tag, anything := azcore.ETag(when.ETag), azcore.ETagAny; {
	case when.Absent:
		conditions.IfNoneMatch = &anything
	case when.ETag != "":
		conditions.IfMatch = &tag
	default:
		return nil
	}
	return &blob.AccessConditions{ModifiedAccessConditions: conditions}
}

func (a *azure) put(ctx context.Context, uri string, data io.ReaderAt, size int64, when Condition) (etag string,
	err error) {
	b, err := a.blob(uri)
	if err != nil {
		return "", err
	}
	section := func(from, n int64) io.ReadSeekCloser { return streaming.NopCloser(io.NewSectionReader(data, from, n)) }
	var tag *azcore.ETag
	if size <= maxAzurePut {
		err = a.try(ctx, func() error {
			resp, err := b.Upload(ctx, section(0, size), &blockblob.UploadOptions{AccessConditions: when.access()})
			tag = resp.ETag
			return err
		})
		return azureTag(tag), err
	}
	var blocks []string
	for at := int64(0); at < size; at += azurePutBlock {
		id := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%08d", len(blocks)))
		blocks = append(blocks, id)
		if err := a.try(ctx, func() error {
			_, err := b.StageBlock(ctx, id, section(at, min(azurePutBlock, size-at)), nil)
			return err
		}); err != nil {
			return "", err
		}
	}
	err = a.try(ctx, func() error {
		resp, err := b.CommitBlockList(ctx, blocks, &blockblob.CommitBlockListOptions{AccessConditions: when.access()})
		tag = resp.ETag
		return err
	})
	return azureTag(tag), err
}

func azureTag(tag *azcore.ETag) string {
	if tag == nil {
		return ""
	}
	return quotedTag(string(*tag))
}

func (a *azure) remove(ctx context.Context, uri string) error {
	b, err := a.blob(uri)
	if err != nil {
		return err
	}
	with := blob.DeleteSnapshotsOptionTypeInclude
	return a.try(ctx, func() error {
		_, err := b.Delete(ctx, &blob.DeleteOptions{DeleteSnapshots: &with})
		return err
	})
}
