// The lines of the CHANGELOGs, for people: what changed, without hashes of commits, and in one line the versions of our
// own packages that this one now asks for.

/** @param {{ summary: string }} changeset */
async function getReleaseLine({ summary }) {
  const [first = '', ...rest] = summary.trim().split('\n');
  return [`- ${first}`, ...rest.map((line) => (line.trim() === '' ? '' : `  ${line}`))].join('\n');
}

/**
 * @param {unknown} _changesets
 * @param {{ name: string, newVersion: string }[]} dependencies
 */
async function getDependencyReleaseLine(_changesets, dependencies) {
  if (dependencies.length === 0) return '';
  const versions = dependencies.map(({ name, newVersion }) => `\`${name}\` ${newVersion}`).sort();
  return `- Depends on ${versions.join(', ')}.`;
}

export default { getReleaseLine, getDependencyReleaseLine };
