import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { Tollgate, type TollgateProps } from "../lib";
import type { Resources } from "./sam";

const BINARIES = ["limiter", "otp", "courier", "sentinel", "mfa", "webhook", "authorizer", "sample-api"];

/** A folder as `cargo lambda build` leaves it: templates are made of where binaries are, not of what is in them. */
export function artifacts(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "tollgate-cdk-"));
  for (const binary of BINARIES) {
    mkdirSync(path.join(folder, binary));
    writeFileSync(path.join(folder, binary, "bootstrap"), binary);
  }
  return folder;
}

/** An app whose templates the CDK's own rules are asked about. */
export function strictApp(): App {
  return new App({ outdir: mkdtempSync(path.join(tmpdir(), "cdk-out-")), context: { "@aws-cdk/core:validateAgainstDefaultRules": true } });
}

/** A stack with only this. */
export function tollgate(props: Partial<TollgateProps>): Template {
  const stack = new Stack(strictApp(), "test", { env: { region: "eu-central-1" } });
  new Tollgate(stack, "Tollgate", { artifacts: artifacts(), policy: { parameter: "/tollgate/policy" }, ...props });
  return Template.fromStack(stack);
}

export function resources(template: Template): Resources {
  return template.toJSON().Resources as Resources;
}
