export default function Page() {
  return <p>Stock</p>;
}
