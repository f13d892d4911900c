/** The name of a record's pointer, which is the version of the record: `NUMBER.UNTIL.WRITER.OFFSET-LENGTH`, and `.i` where it is idle. */
export interface Pointer {
  readonly name: string;
  /** The machine's clock at the write, in microseconds; higher than that of the write before. */
  readonly number: number;
  /** The machine's clock when all holds of the record have ended, in microseconds; 0: it has none. */
  readonly until: number;
  /** The file that has the value. */
  readonly writer: string;
  readonly offset: number;
  readonly length: number;
  /** Whether the record may be deleted once it is old. */
  readonly isIdle: boolean;
}

const FORM = /^([0-9a-z]+)\.([0-9a-z]+)\.([\w-]+)\.([0-9a-z]+)-([0-9a-z]+)(\.i)?$/;

export function pointerOf(parts: Omit<Pointer, 'name'>): Pointer {
  const { number, until, writer, offset, length, isIdle } = parts;
  const numbers = [number, until].map((each) => each.toString(36)).join('.');
  const place = `${offset.toString(36)}-${length.toString(36)}`;
  return { ...parts, name: `${numbers}.${writer}.${place}${isIdle ? '.i' : ''}` };
}

/** The pointer with this name; `undefined` for the name of something else. */
export function pointerIn(name: string): Pointer | undefined {
  const [, number = '', until = '', writer = '', offset = '', length = '', idle] = FORM.exec(name) ?? [];
  if (writer === '') return undefined;
  const [numberRead = 0, untilRead = 0, offsetRead = 0, lengthRead = 0] = [number, until, offset, length].map(
    (digits) => Number.parseInt(digits, 36),
  );
  return {
    name,
    number: numberRead,
    until: untilRead,
    writer,
    offset: offsetRead,
    length: lengthRead,
    isIdle: idle !== undefined,
  };
}

/** The number in the name of a pointer, with which it begins: every write needs it, and nothing else of the name. */
export function numberIn(name: string): number {
  return Number.parseInt(name, 36);
}

/** The pointer among the names in the folder of a record: a list that was read while it was renamed may have two. */
export function latest(names: readonly string[]): Pointer | undefined {
  let found: Pointer | undefined;
  for (const name of names) {
    const pointer = pointerIn(name);
    if (pointer !== undefined && (found === undefined || pointer.number > found.number)) found = pointer;
  }
  return found;
}
