/** A name as the tables store it. A column of type `text` would refuse NUL. */
export function nameBytes(name: string): Buffer {
  return Buffer.from(name, 'utf8');
}

/** The first name, in byte order, after all that begin with `prefix`; null: there is none. No byte of UTF-8 is 0xff. */
export function endOfPrefix(prefix: Buffer): Buffer | null {
  if (prefix.length === 0) return null;
  const end = Buffer.from(prefix);
  end[end.length - 1] = (end[end.length - 1] as number) + 1;
  return end;
}
