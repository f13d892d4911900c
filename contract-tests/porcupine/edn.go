package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

type keyword string

// ednReader reads the part of EDN that histories use: maps, keywords, texts, whole numbers and nil. A vector around the maps is skipped.
type ednReader struct{ *bufio.Reader }

// next gives the next value, or io.EOF behind the last one.
func (r ednReader) next() (any, error) {
	c, err := r.visible()
	if err != nil {
		return nil, err
	}
	switch {
	case c == '{':
		return r.mapping()
	case c == '"':
		text := []byte{c}
		for escaped := false; ; {
			if c, err = r.ReadByte(); err != nil {
				return nil, io.ErrUnexpectedEOF
			}
			text = append(text, c)
			if c == '"' && !escaped {
				return strconv.Unquote(string(text))
			}
			escaped = c == '\\' && !escaped
		}
	}
	word := string(c)
	for {
		if c, err = r.ReadByte(); err != nil {
			break
		}
		if strings.IndexByte(" ,\t\r\n{}[]\"", c) >= 0 {
			_ = r.UnreadByte()
			break
		}
		word += string(c)
	}
	switch {
	case word == "nil":
		return nil, nil
	case word[0] == ':':
		return keyword(word[1:]), nil
	case strings.Trim(word, "-0123456789N") == "":
		// A number stays a text: a token may be longer than 64 bits.
		return strings.TrimSuffix(word, "N"), nil
	}
	return nil, fmt.Errorf("cannot read %q", word)
}

func (r ednReader) mapping() (any, error) {
	entries := map[string]any{}
	for {
		c, err := r.visible()
		if err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		if c == '}' {
			return entries, nil
		}
		_ = r.UnreadByte()
		key, err := r.next()
		if err != nil {
			return nil, err
		}
		name, ok := key.(keyword)
		if !ok {
			return nil, fmt.Errorf("%v is no keyword", key)
		}
		if entries[string(name)], err = r.next(); err != nil {
			return nil, err
		}
	}
}

// visible gives the next byte that is neither white space nor part of a vector's frame.
func (r ednReader) visible() (byte, error) {
	for {
		c, err := r.ReadByte()
		if err != nil || strings.IndexByte(" ,\t\r\n[]", c) < 0 {
			return c, err
		}
	}
}
