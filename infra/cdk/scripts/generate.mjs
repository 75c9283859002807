// What the construct has in common with infra/template.yaml word for word, taken from there: the dashboard, the prices that it
// reckons with, and the saved queries. The licences are the repository's.
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
// Tags of CloudFormation are left as what they are on: only plain values are read here.
const template = parse(readFileSync(at("../../template.yaml"), "utf8"), { logLevel: "silent" });
const [dashboard] = template.Resources.Dashboard.Properties.DashboardBody;
const { Prices: prices } = template.Mappings;
const saved = Object.entries(template.Resources).filter(([, { Type }]) => Type === "AWS::Logs::QueryDefinition");
const queries = saved.map(([id, { Properties: has }]) => ({ id, name: has.Name, query: has.QueryString }));
writeFileSync(at("../lib/generated.json"), JSON.stringify({ dashboard, prices, queries }, null, 1) + "\n");
for (const licence of ["LICENSE-MIT", "LICENSE-APACHE"]) {
  copyFileSync(at(`../../../${licence}`), at(`../${licence}`));
}
