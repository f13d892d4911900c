/** The pattern of `SCAN … MATCH` as a regular expression: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a plain character. */
export function globToRegExp(pattern: string): RegExp {
  let source = '';
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at] as string;
    const close = char === '[' ? pattern.indexOf(']', at + 1) : -1;
    if (char === '*') source += '[^]*';
    else if (char === '?') source += '[^]';
    else if (char === '\\' && at + 1 < pattern.length) source += literal(pattern[++at] as string);
    else if (close > at) {
      source += `[${pattern.slice(at + 1, close).replace(/[\\[]/g, '\\$&')}]`;
      at = close;
    } else source += literal(char);
  }
  return new RegExp(`^${source}$`);
}

function literal(char: string): string {
  return char.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}
