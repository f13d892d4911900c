/** With a thin space between thousands. */
export function whole(value: number): string {
  if (Number.isNaN(value)) return '';
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ' ');
}

export function signed(value: number): string {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(1)}`;
}
