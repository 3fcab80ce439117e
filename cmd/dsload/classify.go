package main

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/dsload/dsload/loader"
	"github.com/dsload/dsload/loader/build"
	"github.com/dsload/dsload/loader/build/source"
	"github.com/dsload/dsload/loader/textcache"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

// These functions classify an error by its type. exitCode calls them in the order usage, limit,
// unreachable, corrupt, interrupted.

func isUsage(err error) bool {
	var option *loader.OptionError
	var settings *shard.SettingsError
	var stale *build.StaleError
	var plan *build.PlanError
	var addition *build.AppendError
	var input *source.InputError
	var access *textcache.AccessError
	if errors.As(err, &input) && input.Offset < 0 && errors.Is(err, fs.ErrNotExist) {
		return true // the command names a missing file; a source that vanishes later is not wrong usage
	}
	return errors.As(err, &option) || errors.As(err, &settings) || errors.As(err, &stale) ||
		errors.As(err, &addition) || errors.As(err, &plan) ||
		errors.As(err, &access) ||
		anyOf(err, source.ErrUsage, tokenize.ErrFolder, shard.ErrForeign, shard.ErrNotFound, shard.ErrNoSplit)
}

func isLimit(err error) bool {
	var capped *build.CapError
	var need *source.NeedError
	return errors.As(err, &capped) || errors.As(err, &need) || anyOf(err, build.ErrMemory, tokenize.ErrTooLarge,
		syscall.ENOSPC,
		syscall.EDQUOT, syscall.EFBIG)
}

// isUnreachable reports whether a remote source gave no answer, or no usable one.
func isUnreachable(err error) bool { return errors.Is(err, source.ErrUnreachable) }

func isCorrupt(err error) bool {
	var input *source.InputError
	if errors.As(err, &input) && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.EIO)) {
		return false // the file system failed, not the data
	}
	var record *source.RecordError
	var changed *source.SourceChangedError
	var file *shard.FileError
	return errors.As(err, &record) || errors.As(err, &changed) || errors.Is(err, source.ErrMismatch) ||
		errors.As(err, &file) && errors.Is(err, shard.ErrTooLarge) ||
		anyOf(err, source.ErrBinary, source.ErrCorrupt, source.ErrTruncated, source.ErrMalformed, source.ErrTooLarge,
			source.ErrNoDocuments, source.ErrUnsupported, source.ErrUnknownField,
			tokenize.ErrFormat, shard.ErrOtherPart, shard.ErrCorrupt, shard.ErrTruncated, shard.ErrVersion)
}

func isInterrupted(err error) bool {
	return anyOf(err, build.ErrInterrupted, context.Canceled)
}

func anyOf(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
