// The packages are part of what is built, and not left to Node.
export default { ssr: { noExternal: true } };
