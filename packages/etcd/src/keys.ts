/** A range of keys, `[key, range_end)`. */
export interface KeyRange {
  readonly key: Buffer;
  readonly range_end: Buffer;
}

/**
 * The layout of the keys: `<prefix>/<name>/<acquisition id>` for every acquisition that holds or waits,
 * `<prefix>//<session>` for every process that waits, `<prefix>//stolen/<name>` for every hold that was stolen, and `<prefix>//layout`, the marker of this layout. A prefix ends with a
 * slash and has no two in a row: the first `//` of a key ends its prefix, and no key belongs to two prefixes. No name is empty, so a third
 * slash in a row belongs to no name.
 */
export class Keys {
  /** What all keys start with, as the user gave it. */
  readonly prefix: string;
  readonly #prefix: string;

  constructor(prefix: string) {
    this.prefix = prefix;
    this.#prefix = `${prefix}/`;
  }

  /** The marker of the layout. */
  get layout(): Buffer {
    return Buffer.from(`${this.#prefix}/layout`);
  }

  of(resource: string, acquisitionId: string): Buffer {
    return Buffer.from(`${this.#prefix}${escapeName(resource)}/${acquisitionId}`);
  }

  /** Every acquisition of a resource, and nothing else. */
  rangeOf(resource: string): KeyRange {
    return prefixRange(Buffer.from(`${this.#prefix}${escapeName(resource)}/`));
  }

  /** Every acquisition of the resources whose names start with `namePrefix`. */
  rangeOfNames(namePrefix: string): KeyRange {
    if (namePrefix !== '') return prefixRange(Buffer.from(this.#prefix + escapeName(namePrefix)));
    return prefixRange(Buffer.from(this.#prefix));
  }

  session(id: string): Buffer {
    return Buffer.from(`${this.#prefix}/${id}`);
  }

  /** The mark that exists while an acquisition that stole the resource holds it. */
  stealMark(resource: string): Buffer {
    return Buffer.from(`${this.#prefix}/stolen/${escapeName(resource)}`);
  }

  /** The resource and acquisition id of a key; `undefined` for the mark of a session, of a steal or of the layout. */
  parse(key: Buffer): { resource: string; acquisitionId: string } | undefined {
    const rest = key.toString('utf8').slice(this.#prefix.length);
    const slash = rest.indexOf('/');
    if (slash <= 0) return undefined;
    return { resource: unescapeName(rest.slice(0, slash)), acquisitionId: rest.slice(slash + 1) };
  }
}

/**
 * Escapes one character at a time, so that the escaped prefix of a name is a prefix of the escaped name. A slash ends a
 * name, and control characters would garble an operator's terminal.
 */
export function escapeName(name: string): string {
  // oxlint-disable-next-line no-control-regex
  return name.replace(/[%/\u0000-\u001f\u007f]/g, (char) => {
    return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  });
}

function unescapeName(escaped: string): string {
  return escaped.replace(/%([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

export function prefixRange(prefix: Buffer): KeyRange {
  const end = Buffer.from(prefix);
  // UTF-8 has no byte 0xff, so the last byte cannot overflow.
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  return { key: prefix, range_end: end };
}
