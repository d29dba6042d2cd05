//! `execution_stream.v1`: the contract between execution, storage, browser and every other client.
