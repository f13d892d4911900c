/**
 * Characters that change how a terminal shows other text: control characters, also of C1, directions and line ends of Unicode.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Text that others wrote (names, labels, ids, messages of servers) without characters that change what a terminal shows. */
export function shown(text: string): string {
  return text.replace(UNSAFE, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

/** A line of JSON in which characters that change what a terminal shows are escaped. */
export function jsonLine(value: unknown): string {
  const json = JSON.stringify(value);
  return `${json.replace(UNSAFE, (char) => char.split('').map(escaped).join(''))}\n`;
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
