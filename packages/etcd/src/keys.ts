/** A range of keys, `[key, range_end)`. */
export interface KeyRange {
  readonly key: Buffer;
  readonly range_end: Buffer;
}

/**
 * Where everything is: `<prefix><name>/<acquisition id>` for every acquisition that holds or waits, and
 * `<prefix>/<session>` for every process that waits (no name is empty, so no name starts with a slash there).
 */
export class Keys {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  of(resource: string, acquisitionId: string): Buffer {
    return Buffer.from(`${this.#prefix}${escapeName(resource)}/${acquisitionId}`);
  }

  /** Every acquisition of a resource, and nothing else. */
  rangeOf(resource: string): KeyRange {
    return prefixRange(Buffer.from(`${this.#prefix}${escapeName(resource)}/`));
  }

  /** Every acquisition of the resources whose names start so. */
  rangeOfNames(namePrefix: string): KeyRange {
    if (namePrefix !== '') return prefixRange(Buffer.from(this.#prefix + escapeName(namePrefix)));
    return prefixRange(Buffer.from(this.#prefix));
  }

  session(id: string): Buffer {
    return Buffer.from(`${this.#prefix}/${id}`);
  }

  /** The resource and acquisition id of a key; `undefined` for a session's. */
  parse(key: Buffer): { resource: string; acquisitionId: string } | undefined {
    const rest = key.toString('utf8').slice(this.#prefix.length);
    const slash = rest.indexOf('/');
    if (slash <= 0) return undefined;
    return { resource: unescapeName(rest.slice(0, slash)), acquisitionId: rest.slice(slash + 1) };
  }
}

/**
 * One character at a time, so that the escaped prefix of a name is a prefix of the escaped name. The slash ends a name;
 * control characters would spoil an operator's terminal.
 */
function escapeName(name: string): string {
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
  // UTF-8 has no byte 0xff, so that no byte overflows.
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  return { key: prefix, range_end: end };
}
