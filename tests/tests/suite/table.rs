//! Creating a table, and being told what is wrong with one.

use crate::harness::{json, raw, run, run_at_root, stderr, stdout};
use tollgate_cli::embedded::Embedded;

#[tokio::test(flavor = "multi_thread")]
async fn a_created_table_is_as_it_should_be() {
    let embedded = Embedded::start(None).await.unwrap();
    let at = ["--endpoint-url", embedded.endpoint(), "--table", "limits"];
    tokio::task::block_in_place(|| {
        let created = run(&[&["table", "create", "--deletion-protection"][..], &at].concat());
        assert!(created.status.success() && stdout(&created).contains("limits is ready"), "{}", stderr(&created));
        let described = run(&[&["table", "describe", "--json"][..], &at].concat());
        assert!(described.status.success(), "{}", stderr(&described));
        let findings = json(&described);
        let is = |what: &str| findings.as_array().unwrap().iter().find(|f| f["what"] == what).unwrap()["is"].clone();
        assert_eq!((is("partition key"), is("billing")), ("pk (HASH)".into(), "on demand".into()));
        assert_eq!((is("TTL"), is("deletion protection")), ("on expires_at".into(), "on".into()));
        let again = run(&[&["table", "create"][..], &at].concat());
        assert!(again.status.code() == Some(1) && stderr(&again).contains("exists already"), "{}", stderr(&again));
        let recovery = ["--endpoint-url", embedded.endpoint(), "--table", "with-pitr"];
        let unsupported = run(&[&["table", "create", "--point-in-time-recovery"][..], &recovery].concat());
        assert!(unsupported.status.code() == Some(3) && stderr(&unsupported).contains("was created, but"));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn each_thing_that_is_wrong_comes_with_how_to_mend_it() {
    use aws_sdk_dynamodb::types::{
        AttributeDefinition, KeySchemaElement, KeyType, ProvisionedThroughput, ScalarAttributeType,
    };
    let embedded = Embedded::start(None).await.unwrap();
    let throughput = ProvisionedThroughput::builder().read_capacity_units(1).write_capacity_units(1).build().unwrap();
    let attribute = AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::N);
    let request = raw(embedded.endpoint()).create_table().table_name("foreign");
    let request = request.attribute_definitions(attribute.build().unwrap()).provisioned_throughput(throughput);
    let key = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build().unwrap();
    request.key_schema(key).send().await.unwrap();
    let at = ["--endpoint-url", embedded.endpoint(), "--table", "foreign"];
    tokio::task::block_in_place(|| {
        let described = run(&[&["table", "describe"][..], &at].concat());
        assert_eq!(described.status.code(), Some(1));
        let text = stdout(&described);
        for says in [
            "FAIL  partition key",
            "id (HASH)",
            "PAY_PER_REQUEST",
            "update-time-to-live",
            "deletion-protection-enabled",
        ] {
            assert!(text.contains(says), "{says}: {text}");
        }
        assert!(stderr(&described).contains("cannot be used as it is: partition key"));
        let inspected = run_at_root(&[&["inspect", "user:alice"][..], &at].concat());
        assert!(
            inspected.status.code() == Some(1) && stderr(&inspected).contains("tollgate table describe"),
            "{}",
            stderr(&inspected)
        );
    });
}
